// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talosapi

import (
	"context"
	"errors"
	"io"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// stream answers what it holds, then with its error.
type stream[T any] struct {
	grpc.ClientStream
	answers []*T
	err     error
}

func (s *stream[T]) Recv() (*T, error) {
	if len(s.answers) == 0 {
		return nil, s.err
	}
	first := s.answers[0]
	s.answers = s.answers[1:]

	return first, nil
}

// newTalos plays the API of a node since Talos 1.13.
type newTalos struct {
	machineapi.LifecycleServiceClient
	machineapi.ImageServiceClient
	pull, upgrade error
	said          []string
	code          *int32
}

func (n *newTalos) client() *client.Client {
	return &client.Client{
		LifecycleClient: lifecycleClient{n}, ImageClient: imageClient{n},
	}
}

type imageClient struct{ *newTalos }

type lifecycleClient struct{ *newTalos }

func (i imageClient) Pull(
	context.Context, *machineapi.ImageServicePullRequest, ...grpc.CallOption,
) (grpc.ServerStreamingClient[machineapi.ImageServicePullResponse], error) {
	return &stream[machineapi.ImageServicePullResponse]{err: i.pull}, nil
}

func (l lifecycleClient) Upgrade(
	context.Context, *machineapi.LifecycleServiceUpgradeRequest, ...grpc.CallOption,
) (grpc.ServerStreamingClient[machineapi.LifecycleServiceUpgradeResponse], error) {
	s := &stream[machineapi.LifecycleServiceUpgradeResponse]{err: l.upgrade}
	add := func(p *machineapi.LifecycleServiceInstallProgress) {
		s.answers = append(s.answers, &machineapi.LifecycleServiceUpgradeResponse{Progress: p})
	}
	for _, piece := range l.said {
		add(&machineapi.LifecycleServiceInstallProgress{
			Response: &machineapi.LifecycleServiceInstallProgress_Message{Message: piece},
		})
	}
	if l.code != nil {
		add(&machineapi.LifecycleServiceInstallProgress{
			Response: &machineapi.LifecycleServiceInstallProgress_ExitCode{ExitCode: *l.code},
		})
	}

	return s, nil
}

func (n *newTalos) Install(
	context.Context, *machineapi.LifecycleServiceInstallRequest, ...grpc.CallOption,
) (grpc.ServerStreamingClient[machineapi.LifecycleServiceInstallResponse], error) {
	return nil, errors.New("nobody installs")
}

func TestInstallTellsWhatTheInstallerSays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		node  newTalos
		lines []string
		want  string
	}{
		"it installs": {
			node:  newTalos{pull: io.EOF, said: []string{"fir", "st\nsecond\nla", "st"}, code: new(int32)},
			lines: []string{"first", "second", "last"},
		},
		"the installer fails": {
			node:  newTalos{pull: io.EOF, said: []string{"a\nb\nc\n", "Error: pre-flight checks failed\n"}, code: ptr(int32(1))},
			lines: []string{"a", "b", "c", "Error: pre-flight checks failed"},
			want:  "installing image:v2 ended with exit code 1: b; c; Error: pre-flight checks failed",
		},
		"the image cannot be pulled": {
			node: newTalos{pull: status.Error(codes.NotFound, "error pulling image: not found")},
			want: "pulling image:v2: rpc error: code = NotFound desc = error pulling image: not found",
		},
		"another installation runs": {
			node: newTalos{
				pull: io.EOF, upgrade: status.Error(codes.FailedPrecondition, "another installation/upgrade is already in progress"),
			},
			want: "installing image:v2: rpc error: code = FailedPrecondition " +
				"desc = another installation/upgrade is already in progress",
		},
		"the node says nothing more": {
			node:  newTalos{pull: io.EOF, said: []string{"half"}, upgrade: io.EOF},
			lines: nil,
			want:  "installing image:v2: the node ended the installation without a result",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			err := install(t.Context(), test.node.client(), "image:v2", func(line string) { lines = append(lines, line) })
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, test.want)
			}
			assert.Equal(t, test.lines, lines)
		})
	}
}

func TestInstallLeavesOlderTalosToTheOlderAPI(t *testing.T) {
	t.Parallel()
	node := newTalos{pull: status.Error(codes.Unimplemented, "unknown service machine.ImageService")}
	err := install(t.Context(), node.client(), "image:v2", func(string) {})
	assert.Equal(t, codes.Unimplemented, status.Code(err))
}

func ptr[T any](v T) *T { return &v }
