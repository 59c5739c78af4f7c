// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/doctor"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/stackfile"
)

func doctorCommand(w *where) *cobra.Command {
	var live, asJSON bool
	var timeout time.Duration
	cmd := w.onStack("doctor", "Find what would keep a stack from coming up, and say what to do",
		"Looks at the tools and the stack's settings, and with --live at Proxmox VE, the Image Factory, mirrors, charts\n"+
			"and the git host. It changes nothing. Everything is reported at once, each finding with a remedy.",
		func(cmd *cobra.Command, project pulumi.Project, stack pulumi.CLI) error {
			in, err := doctorInput(cmd, project, stack)
			if err != nil {
				return err
			}
			in.Live, in.Timeout = live, timeout
			report := doctor.Run(cmd.Context(), in)
			if asJSON {
				err = report.PrintJSON(cmd.OutOrStdout())
			} else {
				report.Print(cmd.OutOrStdout())
			}
			if err == nil && report.Failed() {
				return errFound
			}

			return err
		})
	cmd.Flags().BoolVar(&live, "live", false, "ask Proxmox VE too, and all else that the first up will ask")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "how long to wait for each answer")

	return cmd
}

func doctorInput(cmd *cobra.Command, project pulumi.Project, stack pulumi.CLI) (doctor.Input, error) {
	s, opened, err := stackfile.Load(cmd.Context(), project, stack)
	if err != nil {
		return doctor.Input{}, opened.Explain(err)
	}
	if opened.Closed != nil {
		return doctor.Input{}, opened.Closed // what is asked with stand-ins would be refused
	}

	return doctor.Input{
		Stack: stack.Stack, Config: s.Config, Access: stackfile.Access(s.Config.Proxmox), Charts: stackfile.Cache(project.Dir), Now: time.Now,
		Pulumi: pulumi.CLI{Dir: project.Dir}.Run,
	}, nil
}
