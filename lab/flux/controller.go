// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package flux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// again is how long a controller that has ended stays ended.
	again = time.Second
	// grace is how long a controller gets to end by itself.
	grace = 5 * time.Second
	// tokenSeconds is how long the service account's token is good for: longer than any lab runs.
	tokenSeconds = 365 * 24 * 3600
)

// controller runs the process of one pod, started again as often as it ends.
type controller struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// stop ends the process and waits for it.
func (c *controller) stop() {
	c.cancel()
	<-c.ended
}

// start runs a pod's controller until the pod or ctx ends.
func (w *watcher) start(ctx context.Context, pod *corev1.Pod) *controller {
	ctx, cancel := context.WithCancel(ctx)
	c := &controller{cancel: cancel, ended: make(chan struct{})}
	name := pod.Labels[appLabel]
	log := w.Log.With("controller", name, "pod", pod.Namespace+"/"+pod.Name)

	go func() {
		defer close(c.ended)

		for ctx.Err() == nil {
			log.Info("a controller of Flux starts")
			err := w.run(ctx, name, pod)
			if ctx.Err() != nil {
				return
			}
			log.Warn("a controller of Flux has ended; it is started again", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(again):
			}
		}
	}()

	return c
}

// run runs a controller once.
func (w *watcher) run(ctx context.Context, name string, pod *corev1.Pod) error {
	dir := filepath.Join(w.Dir, pod.Namespace, name)
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return fmt.Errorf("making the controller's directory: %w", err)
	}
	kubeconfig, err := w.kubeconfig(ctx, dir, pod)
	if err != nil {
		return err
	}
	args, err := arguments(name, dir, pod)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(w.Dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the controller's log: %w", err)
	}
	defer func() { _ = log.Close() }() // the process has ended

	command := slices.Concat(w.Supervisor, []string{filepath.Join(w.Programs, name)}, args)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) // G204: the lab's own programs
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(slices.Clone(w.Environment), "KUBECONFIG="+kubeconfig, "RUNTIME_NAMESPACE="+pod.Namespace,
		"HOME="+dir, "TMPDIR="+filepath.Join(dir, "tmp"), "PATH="+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at our terminal is ours to handle
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	input, err := cmd.StdinPipe() // ends with us
	if err != nil {
		return fmt.Errorf("starting the controller: %w", err)
	}
	defer func() { _ = input.Close() }() // the process has ended

	if err := cmd.Run(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("it ended with %w; see %s", err, log.Name())
	}

	return nil
}

// arguments returns the pod's, and over them what is different outside of a pod.
func arguments(name, dir string, pod *corev1.Pod) ([]string, error) {
	// A dependency is looked at again sooner than in life, where half a minute is nothing.
	args := []string{"--requeue-dependency=2s"}
	for _, c := range pod.Spec.Containers {
		args = append(args, c.Args...)
	}
	args = append(args, "--enable-leader-election=false", "--metrics-addr=0", "--health-addr=0", "--events-addr=")
	if name != sourceController {
		return args, nil
	}
	address, err := artifactAddress(filepath.Join(dir, "artifacts.address"))
	if err != nil {
		return nil, err
	}

	return append(args, "--storage-path="+filepath.Join(dir, "artifacts"),
		"--storage-addr="+address, "--storage-adv-addr="+address), os.MkdirAll(filepath.Join(dir, "artifacts"), 0o700)
}

// artifactAddress returns where the artifacts are served: the same address after a restart, as a Service's is,
// while nobody else has it. Who reads artifacts tries a dead address for minutes.
func artifactAddress(file string) (string, error) {
	last, err := os.ReadFile(file) // G304: the site's own directory
	if err != nil {
		last = []byte("127.0.0.1:0")
	}
	l, err := net.Listen("tcp", string(last))
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return "", fmt.Errorf("finding a port for artifacts: %w", err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil { // it is the controller's to listen on
		return "", fmt.Errorf("finding a port for artifacts: %w", err)
	}

	return address, os.WriteFile(file, []byte(address), 0o600)
}

// kubeconfig writes the credentials of the pod's service account, and nothing more, to a file.
func (w *watcher) kubeconfig(ctx context.Context, dir string, pod *corev1.Pod) (string, error) {
	seconds := int64(tokenSeconds)
	token, err := w.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}},
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("getting a token of service account %s/%s: %w", pod.Namespace, pod.Spec.ServiceAccountName, err)
	}

	const only = "lab"
	config := clientcmdapi.NewConfig()
	config.Clusters[only] = &clientcmdapi.Cluster{
		Server: w.Admin.Host, CertificateAuthorityData: w.Admin.CAData, TLSServerName: w.Admin.ServerName,
	}
	config.AuthInfos[only] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts[only] = &clientcmdapi.Context{Cluster: only, AuthInfo: only, Namespace: pod.Namespace}
	config.CurrentContext = only
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing the controller's kubeconfig: %w", err)
	}

	return path, nil
}
