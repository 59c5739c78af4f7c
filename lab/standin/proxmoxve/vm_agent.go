// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

type agentInterface struct {
	Name      string `json:"name"`
	MAC       string `json:"hardware-address"`
	Addresses []struct {
		Address string `json:"ip-address"`
		Type    string `json:"ip-address-type"`
	} `json:"ip-addresses"`
}

// observeAgent waits until the guest agent tells an address, or agent.timeout is over; the latter is
// no error, the addresses are then empty.
func (m machine) observeAgent(
	ctx context.Context, op *bridge.Op, config vmConfig, base, out bridge.Tree,
) {
	v4, v6, names := []any{}, []any{}, []string{}
	defer func() {
		out["ipv4Addresses"], out["ipv6Addresses"], out["networkInterfaceNames"] = v4, v6, names
	}()

	if started, _ := out["started"].(bool); !started || firstOf(config["agent"], "enabled") != "1" {
		return
	}

	timeout, err := time.ParseDuration(base.Str("agent.timeout"))
	if err != nil {
		timeout = 15 * time.Minute
	}

	interfaces := m.awaitAgent(ctx, timeout)
	if interfaces == nil {
		op.Conn.Log(wire.Debug, op.URN, "timeout while waiting for the QEMU agent to publish the network interfaces")
		out["macAddresses"] = []string{}
		return
	}

	macs := []string{}
	for _, i := range interfaces {
		a4, a6 := []string{}, []string{}
		for _, a := range i.Addresses {
			switch a.Type {
			case "ipv4":
				a4 = append(a4, a.Address)
			case "ipv6":
				a6 = append(a6, a.Address)
			}
		}
		v4, v6, names = append(v4, list(a4)), append(v6, list(a6)), append(names, i.Name)
		macs = append(macs, strings.ToUpper(i.MAC))
	}
	out["macAddresses"] = macs
}

func list(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}

	return out
}

func (m machine) awaitAgent(ctx context.Context, timeout time.Duration) []agentInterface {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	answer := struct {
		Result []agentInterface `json:"result"`
	}{}

	err := poll(ctx, agentPoll, func() error {
		if err := m.get(ctx, m.path("/agent/network-get-interfaces"), &answer); err != nil || !reachable(answer.Result) {
			return errRunning
		}
		return nil
	})
	if err != nil {
		return nil
	}

	return answer.Result
}

// reachable: an interface other than the loopback has a global unicast address.
func reachable(interfaces []agentInterface) bool {
	for _, i := range interfaces {
		if i.Name == "lo" {
			continue
		}
		for _, a := range i.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil && ip.IsGlobalUnicast() {
				return true
			}
		}
	}

	return false
}
