// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package chaos

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// byHandStep does what an operator does in the web interface of Proxmox VE or with kubectl. What is not there is
// left alone, so that a shortened script still runs.
func (r *Runner) byHandStep(ctx context.Context, step Step) error {
	if len(step.Args) != 2 {
		return fmt.Errorf("%s: write hand WHAT NODE", step)
	}
	what, node := step.Args[0], step.Args[1]
	if what == "cordon" || what == "uncordon" {
		return r.kubectl(ctx, what, node)
	}
	if what == "forget" {
		return r.forget(ctx, node)
	}
	site, _, err := r.look(ctx)
	if err != nil {
		return err
	}
	for _, vm := range site.VMs {
		if vm.VMID == VMID(node) && vm.Status == "running" {
			if what == "wipe" {
				return r.wipe(ctx, Address(node))
			}

			if what == "disk" {
				r.extra[vm.VMID] = true
			}

			return r.onVM(ctx, what, vm.Host, vm.VMID)
		}
	}

	return nil
}

// onVM stops, resets, deletes or moves a VM, or gives it another disk.
func (r *Runner) onVM(ctx context.Context, what, host string, id int) error {
	api, err := r.proxmox(ctx)
	if err != nil {
		return err
	}
	path := fmt.Sprintf("/nodes/%s/qemu/%d", host, id)
	switch what {
	case "reset":
		return api.call(ctx, http.MethodPost, path+"/status/reset")
	case "stop":
		return api.stopped(ctx, path)
	case "delete":
		if err := api.stopped(ctx, path); err != nil {
			return err
		}

		return api.call(ctx, http.MethodDelete, path)
	case "migrate":
		return api.call(ctx, http.MethodPost, path+"/migrate?online=1&with-local-disks=1&target="+otherHost(host))
	case "disk":
		return api.call(ctx, http.MethodPut, path+"/config?"+extraDisk+"=local-lvm:3")
	default:
		return fmt.Errorf("hand: unknown work %q: write stop, reset, delete, migrate, disk, wipe, cordon, uncordon or forget", what)
	}
}

// extraDisk is the slot of the disk that a VM is given by hand.
const extraDisk = "scsi9"

// takeDisksOut takes the disks out that were added by hand: the provider removes none, and asks for just that. Until
// then each up that follows a refresh fails.
func (r *Runner) takeDisksOut(ctx context.Context) error {
	if len(r.extra) == 0 {
		return nil
	}
	site, _, err := r.look(ctx)
	if err != nil {
		return err
	}
	api, err := r.proxmox(ctx)
	if err != nil {
		return err
	}
	for _, vm := range site.VMs {
		if !r.extra[vm.VMID] {
			continue
		}
		path := fmt.Sprintf("/nodes/%s/qemu/%d/config?delete=%s", vm.Host, vm.VMID, extraDisk)
		if err := api.call(ctx, http.MethodPut, path); err != nil {
			return err
		}
	}

	return nil
}

// forget takes a resource, and what depends on it, out of the stack's state.
func (r *Runner) forget(ctx context.Context, name string) error {
	_, resources, err := r.look(ctx)
	if err != nil {
		return err
	}
	for _, res := range resources {
		if strings.HasSuffix(res.URN, "::"+name) {
			r.pulumi(ctx, "state", "delete", res.URN, "--target-dependents", "--stack", stackName, "--yes")
		}
	}

	return nil
}

// kubectl cordons or uncordons a node, where there is a cluster to do it in.
func (r *Runner) kubectl(ctx context.Context, what, node string) error {
	out := r.pulumi(ctx, "stack", "output", "kubeconfig", "--show-secrets", "--stack", stackName)
	if out.exit != 0 {
		return nil // there is no cluster yet
	}
	file := filepath.Join(r.Dir, "kubeconfig")
	if err := os.WriteFile(file, []byte(out.stdout), 0o600); err != nil {
		return err
	}
	done := r.exec(ctx, "kubectl", "--kubeconfig", file, what, node)
	if done.exit != 0 && !strings.Contains(done.text(), "not found") {
		return fmt.Errorf("kubectl %s %s: %s", what, node, done.text())
	}

	return nil
}

// proxmox calls the API of Proxmox VE as the lab's commands do.
type proxmox struct {
	client *http.Client
	token  string
}

func (r *Runner) proxmox(ctx context.Context) (*proxmox, error) {
	if r.hand != nil {
		return r.hand, nil
	}
	env := map[string]string{}
	for line := range strings.Lines(r.exec(ctx, "env").stdout) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[key] = value
	}
	proxy, err := url.Parse(env["HTTPS_PROXY"])
	if err != nil {
		return nil, err
	}
	bundle, err := os.ReadFile(env["SSL_CERT_FILE"])
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return nil, errors.New("the lab's certificates cannot be read")
	}
	r.hand = &proxmox{token: env["PROXMOX_VE_API_TOKEN"], client: &http.Client{
		Timeout: time.Minute,
		Transport: &http.Transport{
			Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		},
	}}

	return r.hand, nil
}

// stopped stops a VM and waits until it is off.
func (p *proxmox) stopped(ctx context.Context, path string) error {
	if err := p.call(ctx, http.MethodPost, path+"/status/stop"); err != nil {
		return err
	}
	for range 600 {
		var current struct {
			Data struct {
				Status string `json:"status"`
			} `json:"data"`
		}
		if err := p.get(ctx, path+"/status/current", &current); err != nil {
			return err
		}
		if current.Data.Status == "stopped" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}

	return fmt.Errorf("%s does not stop", path)
}

func (p *proxmox) call(ctx context.Context, method, path string) error {
	return p.do(ctx, method, path, func(io.Reader) error { return nil })
}

func (p *proxmox) get(ctx context.Context, path string, into any) error {
	return p.do(ctx, http.MethodGet, path, func(body io.Reader) error { return json.NewDecoder(body).Decode(into) })
}

func (p *proxmox) do(ctx context.Context, method, path string, read func(io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, method, "https://alpha.example.com:8006/api2/json"+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "PVEAPIToken="+p.token)
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}

	return read(response.Body)
}
