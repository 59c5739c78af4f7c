// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/lab/kube"
)

// crashEnv names the file with the config of a cluster that [TestMain] runs instead of the tests.
const crashEnv = "KUBE_TEST_CRASH"

// portable holds a config in a form for JSON.
type portable struct {
	kube.Config

	Images any // hides the func
}

// TestMain can be the program that starts a cluster and is killed.
func TestMain(m *testing.M) {
	file := os.Getenv(crashEnv)
	if file == "" {
		os.Exit(m.Run())
	}

	if err := runUntilKilled(file); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func runUntilKilled(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var c portable
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	running, err := kube.Start(context.Background(), c.Config)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(running.AdminConfig())
	if err != nil {
		return err
	}
	_, err = client.CoreV1().ConfigMaps("default").Create(context.Background(), configMap("kept"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println(running.Addr())
	select {}
}

func TestCrashKeepsData(t *testing.T) {
	t.Parallel()

	conf := config(t)
	raw, err := json.Marshal(portable{Config: conf})
	require.NoError(t, err)
	file := conf.Dir + ".json"
	require.NoError(t, os.WriteFile(file, raw, 0o600))

	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), crashEnv+"="+file)
	out, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the program said nothing")
	addr := lines.Text()
	require.NoError(t, program.Process.Kill())
	require.Error(t, program.Wait())

	t.Log("the control plane does not outlive the program")
	eventually(t, 10*time.Second, func(context.Context) string {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return ""
		}
		_ = conn.Close()

		return addr + " still answers"
	})

	c := start(t, conf)
	_, err = c.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	require.NoError(t, err)
}
