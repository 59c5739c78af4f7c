// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controlleroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// readyPoll is how often a component that starts is asked whether it is ready.
const readyPoll = 50 * time.Millisecond

// components holds the parsed options of everything that runs on etcd. They share one registry of
// feature gates, so all of them are parsed before any of them runs.
type components struct {
	apiServer         *apiserveroptions.ServerRunOptions
	controllerManager *controlleroptions.KubeControllerManagerOptions
	scheduler         *scheduleroptions.Options
	version           string
}

func parseComponents(c *config, listener net.Listener) (*components, error) {
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	master := "--master=https://" + listener.Addr().String()

	if err := allowOlder(); err != nil {
		return nil, err
	}
	api := apiserveroptions.NewServerRunOptions()
	api.SecureServing.Listener = listener
	emulate, err := emulation(c.Version)
	if err != nil {
		return nil, err
	}
	args := append(append(emulate, "--etcd-servers=unix://"+etcdSocket), c.APIServer...)
	if err := parse("kube-apiserver", api.Flags(), args); err != nil {
		return nil, err
	}

	manager, err := controlleroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("preparing kube-controller-manager: %w", err)
	}
	managerFlags := manager.Flags(controllers.KnownControllers(),
		controllers.ControllersDisabledByDefault(), controllers.ControllerAliases())
	manager.ParsedFlags = &managerFlags
	args = append([]string{master}, c.ControllerManager...)
	if err := parse("kube-controller-manager", managerFlags, args); err != nil {
		return nil, err
	}

	sched := scheduleroptions.NewOptions()
	if err := parse("kube-scheduler", *sched.Flags, append([]string{master}, c.Scheduler...)); err != nil {
		return nil, err
	}

	if err := api.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("setting versions and feature gates: %w", err)
	}

	return &components{apiServer: api, controllerManager: manager, scheduler: sched, version: c.Version}, nil
}

func parse(component string, sets cliflag.NamedFlagSets, args []string) error {
	all := pflag.NewFlagSet(component, pflag.ContinueOnError)
	all.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	all.Usage = func() {}

	if err := all.Parse(args); err != nil {
		return fmt.Errorf("%s: %w", component, err)
	}

	return nil
}

func (c *components) runAPIServer(ctx context.Context) error {
	completed, err := c.apiServer.Complete(ctx)
	if err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	if problems := completed.Validate(); len(problems) > 0 {
		return fmt.Errorf("kube-apiserver: %w", utilerrors.NewAggregate(problems))
	}

	conf, err := apiserver.NewConfig(completed)
	if err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	report(conf, c.version)

	ready, err := conf.Complete()
	if err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	chain, err := apiserver.CreateServerChain(ready)
	if err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}

	return prepared.Run(ctx)
}

// awaitAPIServer returns when the API server is ready, its own roles included.
func (c *components) awaitAPIServer(ctx context.Context) error {
	manager := c.controllerManager
	conf, err := clientcmd.BuildConfigFromFlags(manager.Master, manager.Generic.ClientConnection.Kubeconfig)
	if err != nil {
		return fmt.Errorf("preparing the controllers: %w", err)
	}
	client, err := kubernetes.NewForConfig(conf)
	if err != nil {
		return fmt.Errorf("preparing the controllers: %w", err)
	}

	return wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		_, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)

		return err == nil, nil
	})
}

func (c *components) runControllerManager(ctx context.Context) error {
	conf, err := c.controllerManager.Config(ctx, controllers.KnownControllers(),
		controllers.ControllersDisabledByDefault(), controllers.ControllerAliases())
	if err != nil {
		return fmt.Errorf("kube-controller-manager: %w", err)
	}

	return controllers.Run(ctx, conf.Complete())
}

func (c *components) runScheduler(ctx context.Context) error {
	conf, sched, err := scheduler.Setup(ctx, c.scheduler)
	if err != nil {
		return fmt.Errorf("kube-scheduler: %w", err)
	}

	return scheduler.Run(ctx, conf, sched)
}
