// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package secrettransform_test

import (
	"testing"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components/internal/secrettransform"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
)

// hides fails when the text stands anywhere in a value outside of a secret.
func hides(t *testing.T, value resource.PropertyValue, text string) {
	t.Helper()
	switch {
	case value.IsSecret():
	case value.IsString():
		assert.NotContains(t, value.StringValue(), text)
	case value.IsArray():
		for _, v := range value.ArrayValue() {
			hides(t, v, text)
		}
	case value.IsObject():
		for _, v := range value.ObjectValue() {
			hides(t, v, text)
		}
	}
}

func TestValuesAreWrappedWhereverTheyStand(t *testing.T) {
	t.Parallel()

	const secret = "hunter2-and-more"
	var r pulumitest.Recorder
	require.NoError(t, r.Run(false, func(ctx *pulumi.Context) error {
		if err := secrettransform.Register(ctx, []string{"", secret}); err != nil {
			return err
		}
		machine, err := vm.NewVirtualMachine(ctx, "vm", &vm.VirtualMachineArgs{
			NodeName: pulumi.String("pve"), Description: pulumi.StringPtr("the key is " + secret),
			KvmArguments: pulumi.String("-smbios"), Tags: pulumi.StringArray{pulumi.String("k8s"), pulumi.String(secret)},
			Disks: vm.VirtualMachineDiskArray{&vm.VirtualMachineDiskArgs{
				Interface: pulumi.String("scsi0"), Serial: pulumi.String(secret),
			}},
		})
		if err != nil {
			return err
		}
		_, err = apiextensions.NewCustomResource(ctx, "object", &apiextensions.CustomResourceArgs{
			ApiVersion: pulumi.String("v1"), Kind: pulumi.String("ConfigMap"),
			OtherFields: kubernetes.UntypedArgs{"data": pulumi.Map{"a": pulumi.Map{"b": pulumi.String(secret)}}},
		}, pulumi.ReplaceWith([]pulumi.Resource{machine}), pulumi.DeletedWith(machine))

		return err
	}))

	machine, _ := r.Get("vm")
	hides(t, resource.NewProperty(machine.Inputs), secret)
	assert.Equal(t, "the key is "+secret, machine.Inputs["description"].SecretValue().Element.StringValue())
	assert.Equal(t, "-smbios", machine.Inputs["kvmArguments"].StringValue(), "what is not secret stays readable")
	object, _ := r.Get("object")
	hides(t, resource.NewProperty(object.Inputs), secret)
	assert.NotEmpty(t, r.Register("object").GetReplaceWith(), "options are not lost on the way")
	assert.NotEmpty(t, r.Register("object").GetDeletedWith())
}
