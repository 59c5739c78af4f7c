module ${PROJECT}

go 1.26.6

require (
	github.com/pulumi/pulumi/sdk/v3 v3.263.0
	github.com/talos-proxmox/talos-proxmox v0.1.0
)
