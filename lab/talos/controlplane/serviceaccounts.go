// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	talosconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	coreconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// accountLifetime is that of the certificates which Talos gives pods.
const accountLifetime = 24 * time.Hour

// answerServiceAccounts gives every Talos service account a Secret with a talosconfig, or says why it gets none, as Talos's
// controller does where the configuration lets pods use the Talos API.
func answerServiceAccounts(ctx context.Context, admin *rest.Config, cfg config.Provider) error {
	access := cfg.K8sTalosAPIAccessConfig()
	if access == nil {
		return nil
	}
	dyn, err := dynamic.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("error building dynamic client: %w", err)
	}
	accounts := dyn.Resource(schema.GroupVersionResource{
		Group: constants.ServiceAccountResourceGroup, Version: constants.ServiceAccountResourceVersion,
		Resource: constants.ServiceAccountResourcePlural,
	})
	all, err := accounts.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the kind is not there yet
	}
	if err != nil {
		return fmt.Errorf("error listing Talos service accounts: %w", err)
	}
	var errs []error
	for i := range all.Items {
		account := &all.Items[i]
		reason, err := answerServiceAccount(ctx, dyn, cfg, access, account)
		if was, _, _ := unstructured.NestedString(account.Object, "status", "failureReason"); err == nil && was != reason {
			_ = unstructured.SetNestedField(account.Object, reason, "status", "failureReason")
			_, err = accounts.Namespace(account.GetNamespace()).Update(ctx, account, metav1.UpdateOptions{})
		}
		errs = append(errs, err)
	}

	return errors.Join(errs...)
}

// answerServiceAccount makes the account's Secret, or returns why it gets none.
func answerServiceAccount(
	ctx context.Context, dyn dynamic.Interface, cfg config.Provider, access coreconfig.K8sTalosAPIAccessConfig,
	account *unstructured.Unstructured,
) (string, error) {
	client := dyn.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(account.GetNamespace())
	there, err := client.Get(ctx, account.GetName(), metav1.GetOptions{})
	switch {
	case err == nil && !metav1.IsControlledBy(there, account):
		return fmt.Sprintf("Secret already exists and is not managed by controller: %s/%s", account.GetNamespace(), account.GetName()), nil
	case err == nil:
		return "", nil
	case !apierrors.IsNotFound(err):
		return "", fmt.Errorf("error reading the secret: %w", err)
	}
	wanted, _, _ := unstructured.NestedStringSlice(account.Object, "spec", "roles")
	roles, _ := role.Parse(wanted)
	var refused []string
	for _, r := range wanted {
		if !slices.Contains(access.AllowedRoles(), r) {
			refused = append(refused, r)
		}
	}
	switch {
	case len(roles.Strings()) == 0:
		return "roles not found", nil
	case !slices.Contains(access.AllowedKubernetesNamespaces(), account.GetNamespace()):
		return fmt.Sprintf("namespace not allowed: %s", account.GetNamespace()), nil
	case len(refused) > 0:
		return fmt.Sprintf("roles not allowed: %v", refused), nil
	}
	text, err := accountTalosconfig(cfg, roles)
	if err != nil {
		return "", err
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"stringData": map[string]any{constants.TalosconfigFilename: string(text)},
	}}
	secret.SetName(account.GetName())
	secret.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(account, account.GroupVersionKind())})
	_, err = client.Create(ctx, secret, metav1.CreateOptions{FieldManager: "talos"})

	return "", err
}

// accountTalosconfig returns a talosconfig with a certificate for the roles, for use within the cluster.
func accountTalosconfig(cfg config.Provider, roles role.Set) ([]byte, error) {
	ca := cfg.Machine().Security().IssuingCA()
	client, err := secrets.NewAdminCertificateAndKey(time.Now(), ca, roles, accountLifetime)
	if err != nil {
		return nil, fmt.Errorf("error issuing a certificate: %w", err)
	}
	endpoint := constants.KubernetesTalosAPIServiceName + "." + constants.KubernetesTalosAPIServiceNamespace

	return talosconfig.NewConfig(endpoint, []string{endpoint}, ca.Crt, client).Bytes()
}
