// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"context"
	"strings"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// registerState serves the node's resources, read-only and secrets only to administrators.
func registerState(s *grpc.Server, n *node.Node) {
	st := n.Resources()

	cosiv1alpha1.RegisterStateServer(s, server.NewState(state.WrapCore(state.Filter(st, mayRead(st, n.Image.Talos)))))
}

// shown reports whether a version of Talos shows everybody what later ones keep secret.
func shown(kind resource.Type, version string) bool {
	return kind == k8s.KubeletSpecType && !machineconfig.AtLeast(version, 1, 13)
}

func mayRead(st state.State, version string) state.FilteringRule {
	return func(ctx context.Context, access state.Access) error {
		if !access.Verb.Readonly() {
			return status.Error(codes.PermissionDenied, "write access is not allowed")
		}

		rd, err := safe.StateGet[*meta.ResourceDefinition](ctx, st, resource.NewMetadata(
			meta.NamespaceName, meta.ResourceDefinitionType, strings.ToLower(access.ResourceType),
			resource.VersionUndefined))
		if state.IsNotFoundError(err) {
			return status.Errorf(codes.PermissionDenied, "resource type %q is not supported", access.ResourceType)
		}
		if err != nil {
			return status.Error(codes.Internal, err.Error())
		}
		if rd.TypedSpec().Sensitivity == meta.Sensitive && !callerRoles(ctx).Includes(role.Admin) && !shown(access.ResourceType, version) {
			return status.Error(codes.PermissionDenied, "not authorized")
		}

		_, err = safe.StateGet[*meta.Namespace](ctx, st, resource.NewMetadata(
			meta.NamespaceName, meta.NamespaceType, access.ResourceNamespace, resource.VersionUndefined))
		if state.IsNotFoundError(err) {
			return status.Errorf(codes.PermissionDenied, "namespace %q is not supported", access.ResourceNamespace)
		}
		if err != nil {
			return status.Error(codes.Internal, err.Error())
		}

		return nil
	}
}
