// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package cli has the commands of tpx: flags, arguments, exit codes. What a command does is in a package
// of its own.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
)

// Exit codes of tpx.
const (
	// ExitFine says that the command did its work and found nothing.
	ExitFine = 0
	// ExitFound says that the command did its work and found something: drift, a finding of doctor.
	ExitFound = 1
	// ExitFailed says that the command could not do its work.
	ExitFailed = 2
)

// errFound ends a command that has printed what it found.
var errFound = errors.New("found")

// Run runs tpx and returns its exit code.
func Run(ctx context.Context, args []string, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	switch err := root.ExecuteContext(ctx); {
	case errors.Is(err, errFound):
		return ExitFound
	case err != nil:
		fmt.Fprintln(errs, "tpx:", err)

		return ExitFailed
	default:
		return ExitFine
	}
}

// where holds the flags that every command has.
type where struct{ dir, stack, configFile string }

func newRoot() *cobra.Command {
	w := &where{}
	root := &cobra.Command{
		Use:   "tpx",
		Short: "Check, adopt, inspect and back up the clusters of a talos-proxmox stack",
		Long: `tpx does what Pulumi does not. It works wherever ` + "`pulumi`" + ` works, and asks Pulumi for the stack's
settings, secrets and state, with any backend and any project name.

Exit codes: 0 fine, 1 something was found (drift, findings of doctor), 2 the command could not do its work.`,
		SilenceErrors: true, SilenceUsage: true,
	}
	root.PersistentFlags().StringVarP(&w.dir, "dir", "C", ".", "the project directory, or one below it")
	root.PersistentFlags().StringVarP(&w.stack, "stack", "s", "", "the stack, as Pulumi takes it; its first argument does as well")
	root.PersistentFlags().StringVar(&w.configFile, "config-file", "", "the stack file, where it is not Pulumi.<stack>.yaml")
	root.AddCommand(
		initCommand(w), checkCommand(w),
		driftCommand(w), adoptCommand(w), imagesCommand(w), chartsCommand(w), accessCommand(w), statusCommand(w),
		backupCommand(w), restoreCommand(w), doctorCommand(w), deployKeyCommand(),
	)

	return root
}

// open returns the project and Pulumi on the stack that the flags or the arguments name.
func (w *where) open(args []string) (pulumi.Project, pulumi.CLI, error) {
	project, err := pulumi.FindProject(w.dir)
	if err != nil {
		return project, pulumi.CLI{}, err
	}
	name := w.stack
	if name == "" && len(args) > 0 {
		name = args[0]
	}
	if name == "" {
		return project, pulumi.CLI{}, errors.New("name a stack: tpx … STACK, or --stack STACK")
	}

	return project, pulumi.CLI{Dir: project.Dir, Stack: name, ConfigFile: w.configFile}, nil
}

// completeStacks completes the names of stacks that have a file.
func (w *where) completeStacks(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	project, err := pulumi.FindProject(w.dir)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := project.Stacks()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}

	return names, cobra.ShellCompDirectiveNoFileComp
}

// onStack returns a command that takes a stack.
func (w *where) onStack(use, short, long string, run func(*cobra.Command, pulumi.Project, pulumi.CLI) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " [STACK]", Short: short, Long: long, Args: cobra.MaximumNArgs(1), ValidArgsFunction: w.completeStacks,
		RunE: func(cmd *cobra.Command, args []string) error {
			project, stack, err := w.open(args)
			if err != nil {
				return err
			}

			return run(cmd, project, stack)
		},
	}
}
