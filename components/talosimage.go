// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/download"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/imagefactory"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// TalosImageType is the token of [TalosImage].
const TalosImageType = "talos-proxmox:components:TalosImage"

// downloadTimeout bounds the download of one boot file, in seconds.
const downloadTimeout = 1800

// factoryLimit bounds the wait for the Image Factory to answer; it takes less than a second.
const factoryLimit = time.Minute

// ImageTarget names a datastore that receives the boot file.
type ImageTarget struct {
	// Host downloads the file.
	Host string
	// Datastore of the host that holds ISO images.
	Datastore string
	// Hosts see the file: Host alone, or all that share the datastore.
	Hosts []string
}

// TalosImageArgs describe one image variant of a cluster.
type TalosImageArgs struct {
	// ClusterName is part of the file's name; unique among the clusters that share a datastore.
	ClusterName string
	// Variant is the name of the image variant; [spec.DefaultImage] for the default one.
	Variant string
	// TalosVersion is the version of the image, "v1.12.4". A new one is a new file beside the old,
	// which goes at the end of the run.
	TalosVersion string
	// Image says what is in it. What is unset has the defaults of [spec.Image].
	Image spec.Image
	// Targets receive the file; [ImageTargets] gives them for a whole cluster. No two name the same
	// datastore of the same host.
	Targets []ImageTarget
	// Directory is what Image.SchematicFile is relative to; the working directory when empty.
	Directory string
	// Proxmox says how Proxmox VE is asked which VMs have a file in their drives that is there already and that the
	// state does not know: such a file is not taken over. What it leaves out comes from the provider's environment
	// variables. Without Proxmox.Endpoint no file is downloaded over one that the state does not know.
	Proxmox spec.Proxmox
	// ProxmoxAPIToken and ProxmoxPassword are credentials that other resources produce, in place of those in
	// Proxmox.
	ProxmoxAPIToken pulumi.StringInput `pulumi:"proxmoxApiToken"`
	ProxmoxPassword pulumi.StringInput `pulumi:"proxmoxPassword"`

	// own returns the nodes whose VMs may have the file in their drives; nil where none may.
	own func() []spec.NamedNode
}

// TalosImage registers one image variant at one Talos version: its schematic, registered with the factory,
// and its boot file on every datastore that needs it. Files are never overwritten: whatever decides
// the content is part of the name, and a new content is a new resource.
type TalosImage struct {
	pulumi.ResourceState

	// SchematicID is the id that the factory knows the schematic by.
	SchematicID pulumi.StringOutput `pulumi:"schematicId"`
	// Installer is the container image that installs and upgrades to this image.
	Installer pulumi.StringOutput `pulumi:"installer"`

	files map[string]pulumi.StringOutput
}

// FileID returns the boot file as the host knows it, "local:iso/…". It is an error to ask for a host that
// no target serves.
func (i *TalosImage) FileID(host string) (pulumi.StringOutput, error) {
	id, ok := i.files[host]
	if !ok {
		return pulumi.StringOutput{}, fmt.Errorf("the image has no file on host %q", host)
	}

	return id, nil
}

// ImageTargets returns the datastores that need the variant's boot file: one for each host that runs a
// node of the variant, or a single one where the image's datastore is shared. cfg is complete
// ([spec.Config.WithDefaults]).
func ImageTargets(cfg spec.Config, variant string) []ImageTarget {
	img := cfg.Images[variant]
	var targets []ImageTarget
	for _, node := range cfg.Nodes {
		host := spec.Value(node.Host)
		if spec.Value(node.Node.Image) != variant || host == "" {
			continue
		}
		own := ImageTarget{Host: host, Datastore: spec.Value(img.Datastore)}
		if store := cfg.Proxmox.Hosts[host].ImageDatastore; store != nil {
			own.Datastore = *store
		}
		if img.DatastoreHost != nil && own.Datastore == spec.Value(img.Datastore) {
			own.Host = *img.DatastoreHost
		}
		at := slices.IndexFunc(targets, func(t ImageTarget) bool { return t.Host == own.Host && t.Datastore == own.Datastore })
		if at < 0 {
			at = len(targets)
			targets = append(targets, own)
		}
		if !slices.Contains(targets[at].Hosts, host) {
			targets[at].Hosts = append(targets[at].Hosts, host)
		}
	}

	return targets
}

// NewTalosImage registers the image variant under name.
func NewTalosImage(
	ctx *pulumi.Context, name string, args *TalosImageArgs, opts ...pulumi.ResourceOption,
) (*TalosImage, error) {
	if args == nil {
		return nil, errNoArgs("image", name)
	}
	given, err := pulumi.NewResourceOptions(opts...)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", name, err)
	}
	a := *args
	a.Image = spec.Clone(a.Image)
	spec.FillDefaults(&a.Image)
	if err := a.validate().Err(fmt.Sprintf("image %q", name)); err != nil {
		return nil, err
	}
	schematic, err := image.Resolve(a.Image, a.TalosVersion, a.readFile)
	if err != nil {
		return nil, fmt.Errorf("resolving the schematic of image %q: %w", name, err)
	}

	i := &TalosImage{files: map[string]pulumi.StringOutput{}}
	if err := ctx.RegisterComponentResource(TalosImageType, name, i, opts...); err != nil {
		return nil, fmt.Errorf("registering image %q: %w", name, err)
	}
	after, err := i.register(ctx, name, a, schematic, given.DependsOn)
	if err != nil {
		return nil, err
	}
	for _, target := range a.Targets {
		if err := i.download(ctx, name, a, schematic.ID, target, after); err != nil {
			return nil, err
		}
	}

	i.SchematicID = pulumi.String(schematic.ID).ToStringOutput()
	i.Installer = pulumi.String(image.Installer(a.Image, schematic.ID, a.TalosVersion)).ToStringOutput()

	return i, ctx.RegisterResourceOutputs(i, pulumi.Map{"schematicId": i.SchematicID, "installer": i.Installer})
}

// register makes the schematic known to the factory, which has no image before that, and returns what the
// download depends on.
func (i *TalosImage) register(
	ctx *pulumi.Context, name string, a TalosImageArgs, schematic image.Schematic, first []pulumi.Resource,
) ([]pulumi.Resource, error) {
	if !*a.Image.Register {
		return first, nil
	}
	reachable, err := hook.Register(ctx, hook.ID(TalosImageType, name, "factory"), func(hook.Step, *pulumi.ResourceHookArgs) error {
		if err := image.CheckReachable(ctx.Context(), a.Image, schematic.YAML, factoryLimit); err != nil {
			return fmt.Errorf("registering the schematic of image %q: %w", name, err)
		}

		return nil
	})
	if err != nil {
		return nil, err
	}
	registered, err := imagefactory.NewSchematic(ctx, name+"-schematic-"+schematic.ID[:12], &imagefactory.SchematicArgs{
		Schematic: pulumi.String(schematic.YAML),
	}, pulumi.Parent(i), pulumi.DependsOn(first),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{reachable}}))
	if err != nil {
		return nil, fmt.Errorf("registering the schematic of image %q: %w", name, err)
	}

	return append(slices.Clone(first), registered), nil
}

func (i *TalosImage) download(
	ctx *pulumi.Context, name string, a TalosImageArgs, schematicID string, target ImageTarget, after []pulumi.Resource,
) error {
	fileName := image.FileName(a.ClusterName, a.Variant, schematicID, a.TalosVersion, a.Image)
	args := &download.FileArgs{
		ContentType: pulumi.String("iso"),
		NodeName:    pulumi.String(target.Host),
		DatastoreId: pulumi.String(target.Datastore),
		Url:         pulumi.String(image.DownloadURL(a.Image, schematicID, a.TalosVersion)),
		FileName:    pulumi.String(fileName),
		// Else every refresh compares the size of the packed file with that of the unpacked one.
		Overwrite: pulumi.Bool(false),
		// A run that was killed leaves a file that nobody knows; a hook finds out whether it is in use.
		OverwriteUnmanaged: pulumi.Bool(a.asks()),
		UploadTimeout:      pulumi.Int(downloadTimeout),
	}
	if packing := image.Decompression(a.Image); packing != "" {
		args.DecompressionAlgorithm = pulumi.String(packing)
	}
	if algorithm, value := image.Checksum(a.Image); value != "" {
		args.ChecksumAlgorithm, args.Checksum = pulumi.String(algorithm), pulumi.String(value)
	}

	unused, err := a.unusedHook(ctx, name, fileName, target)
	if err != nil {
		return err
	}
	file, err := download.NewFile(ctx, strings.Join([]string{name, target.Host, target.Datastore, fileName}, "-"), args,
		pulumi.Parent(i), pulumi.DependsOn(after), pulumi.ResourceHooks(unused),
		// Another way to the same content is no reason to download it again.
		pulumi.IgnoreChanges([]string{"url", "checksum", "checksumAlgorithm"}))
	if err != nil {
		return fmt.Errorf("downloading image %q to host %q: %w", name, target.Host, err)
	}
	for _, host := range target.Hosts {
		i.files[host] = file.ID().ToStringOutput()
	}

	return nil
}

// asks reports whether Proxmox VE is asked who uses a file. It does not depend on who runs the program where.
func (a TalosImageArgs) asks() bool { return a.own != nil || a.Proxmox.Endpoint != nil }

// unusedHook returns the hook that looks for VMs of others before a file is downloaded over the one that they boot from.
func (a TalosImageArgs) unusedHook(ctx *pulumi.Context, name, fileName string, target ImageTarget) (*pulumi.ResourceHookBinding, error) {
	if !a.asks() {
		return nil, nil
	}
	api := proxmoxAPI(a.Proxmox, a.ProxmoxAPIToken, a.ProxmoxPassword)
	what := "used/" + target.Host + "/" + target.Datastore
	unused, err := hook.Register(ctx, hook.ID(TalosImageType, name, what), func(hook.Step, *pulumi.ResourceHookArgs) error {
		var own []spec.NamedNode
		if a.own != nil {
			own = a.own()
		}
		if err := api.RefuseUsed(ctx.Context(), target.Datastore+":iso/"+fileName, target.Host, target.Hosts, own); err != nil {
			return fmt.Errorf("downloading image %q to host %q: %w", name, target.Host, err)
		}

		return nil
	})
	if err != nil {
		return nil, err
	}

	return &pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{unused}}, nil
}

func (a TalosImageArgs) validate() *check.List {
	var l check.List
	if a.ClusterName == "" {
		l.Addf("clusterName", "is required")
	}
	if len(a.Targets) == 0 {
		l.Addf("targets", "must name at least one datastore")
	}
	for n, target := range a.Targets {
		if target.Host == "" || target.Datastore == "" || len(target.Hosts) == 0 {
			l.Addf(check.Index("targets", n), "needs host, datastore and hosts")
		}
	}
	rules.CheckImage("image", a.Image, a.TalosVersion, a.readFile, &l)

	return &l
}

func (a TalosImageArgs) readFile(path string) ([]byte, error) {
	return os.ReadFile(filepath.Join(a.Directory, path))
}
