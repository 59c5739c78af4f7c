// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// A program with something of each provider, for the engine's test.
package main

import (
	"os"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/download"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
)

func main() { pulumi.Run(program) }

func program(ctx *pulumi.Context) error {
	provider, err := proxmoxve.NewProvider(ctx, "site", &proxmoxve.ProviderArgs{
		Endpoint: pulumi.String(os.Getenv("TEST_PVE")), Insecure: pulumi.Bool(true),
		ApiToken: pulumi.String(os.Getenv("TEST_TOKEN")),
		Ssh: proxmoxve.ProviderSshArgs{
			Username:   pulumi.String("root"),
			PrivateKey: pulumi.ToSecret(pulumi.String("SECRET-KEY")).(pulumi.StringOutput),
		},
	}, pulumi.Version("6.18.1"))
	if err != nil {
		return err
	}

	iso, err := download.NewFile(ctx, "iso", &download.FileArgs{
		NodeName: pulumi.String("pve1"), DatastoreId: pulumi.String("local"), ContentType: pulumi.String("iso"),
		Url: pulumi.String("https://factory.talos.dev/x.iso"),
	}, pulumi.Provider(provider))
	if err != nil {
		return err
	}

	_, err = vm.NewVirtualMachine(ctx, "cp1", &vm.VirtualMachineArgs{
		NodeName: pulumi.String("pve1"), VmId: pulumi.Int(800), Name: pulumi.String("cp1"),
		StopOnDestroy: pulumi.Bool(true),
		Disks: vm.VirtualMachineDiskArray{vm.VirtualMachineDiskArgs{
			Interface: pulumi.String("scsi0"), Size: pulumi.Int(20),
		}},
		Cdrom: vm.VirtualMachineCdromArgs{
			Enabled: pulumi.Bool(true), FileId: iso.ID().ToStringOutput(), Interface: pulumi.String("ide0"),
		},
		NetworkDevices: vm.VirtualMachineNetworkDeviceArray{vm.VirtualMachineNetworkDeviceArgs{
			MacAddress: pulumi.String("BC:24:11:00:00:01"),
		}},
		SerialDevices: vm.VirtualMachineSerialDeviceArray{vm.VirtualMachineSerialDeviceArgs{}},
	}, pulumi.Provider(provider), pulumi.IgnoreChanges([]string{"disks[0].speed"}))
	if err != nil {
		return err
	}

	secrets, err := machine.NewSecrets(ctx, "secrets", &machine.SecretsArgs{TalosVersion: pulumi.String("v1.12")})
	if err != nil {
		return err
	}
	config := machine.GetConfigurationOutput(ctx, machine.GetConfigurationOutputArgs{
		ClusterName: pulumi.String("dev"), ClusterEndpoint: pulumi.String("https://10.0.0.10:6443"),
		MachineType: pulumi.String("controlplane"), MachineSecrets: secrets.MachineSecrets,
	})
	ctx.Export("config", config.MachineConfiguration())
	ctx.Export("clusterID", pulumi.Unsecret(secrets.MachineSecrets.Cluster().Id()))

	return nil
}
