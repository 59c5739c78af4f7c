package zz

import (
	_ "github.com/cosi-project/runtime/api/v1alpha1"
	_ "github.com/cosi-project/runtime/pkg/state/protobuf/server"
	_ "github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	_ "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	_ "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	_ "github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	_ "github.com/pulumi/pulumi/sdk/v3/proto/go"
	_ "github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
	_ "github.com/siderolabs/image-factory/pkg/schematic"
	_ "github.com/siderolabs/talos/pkg/machinery/client"
	_ "github.com/siderolabs/talos/pkg/machinery/config/configloader"
	_ "github.com/stretchr/testify/require"
	_ "google.golang.org/grpc"
	_ "gopkg.in/yaml.v3"
	_ "helm.sh/helm/v3/pkg/action"
	_ "k8s.io/client-go/dynamic"
	_ "k8s.io/client-go/kubernetes"
	_ "sigs.k8s.io/yaml"
)
