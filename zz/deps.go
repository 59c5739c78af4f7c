package zz

import (
	_ "filippo.io/age"
	_ "github.com/Masterminds/semver/v3"
	_ "github.com/invopop/jsonschema"
	_ "github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	_ "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	_ "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	_ "github.com/pulumi/pulumi/sdk/v3/go/auto"
	_ "github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	_ "github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
	_ "github.com/siderolabs/image-factory/pkg/schematic"
	_ "github.com/siderolabs/talos/pkg/machinery/client"
	_ "github.com/siderolabs/talos/pkg/machinery/compatibility"
	_ "github.com/siderolabs/talos/pkg/machinery/config/configloader"
	_ "github.com/stretchr/testify/require"
	_ "golang.org/x/crypto/ssh"
	_ "gopkg.in/yaml.v3"
	_ "helm.sh/helm/v3/pkg/action"
	_ "k8s.io/client-go/dynamic"
	_ "k8s.io/client-go/kubernetes"
	_ "sigs.k8s.io/yaml"
)
