// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"
)

// askLimit is how long a call may take: what genuine Talos never answers is not answered here either.
const askLimit = 700 * time.Millisecond

// requests returns what the recorded calls asked, where it is more than nothing.
func requests() map[string]proto.Message {
	return map[string]proto.Message{
		"Apply garbage": &machineapi.ApplyConfigurationRequest{Data: []byte("machine: [\n"), DryRun: true},
		"BlockDeviceWipe nonsense": &storage.BlockDeviceWipeRequest{
			Devices: []*storage.BlockDeviceWipeDescriptor{{Device: "nonsense"}},
		},
		"EtcdMemberList local": &machineapi.EtcdMemberListRequest{QueryLocal: true},
		"EtcdRemoveMemberByID": &machineapi.EtcdRemoveMemberByIDRequest{MemberId: 12345},
		"GenerateClientConfiguration": &machineapi.GenerateClientConfigurationRequest{
			Roles: []string{"os:reader"}, CrtTtl: durationpb.New(time.Hour),
		},
		"ImagePull nonsense":        &machineapi.ImagePullRequest{Namespace: common.ContainerdNamespace_NS_CRI, Reference: "10.0.0.77:5000/nonsense:v1"},
		"ImagePull anywhere":        &machineapi.ImagePullRequest{Reference: "10.0.0.77:5000/nonsense:v1"},
		"ImageList anywhere[0]":     &machineapi.ImageListRequest{},
		"ImageList system[0]":       &machineapi.ImageListRequest{Namespace: common.ContainerdNamespace_NS_SYSTEM},
		"ImageList system[1]":       &machineapi.ImageListRequest{Namespace: common.ContainerdNamespace_NS_SYSTEM},
		"Logs machined[0]":          &machineapi.LogsRequest{Id: "machined", Namespace: "system", TailLines: -1},
		"Logs machined no lines[0]": &machineapi.LogsRequest{Id: "machined", Namespace: "system"},
		"Logs nonsense[0]":          &machineapi.LogsRequest{Id: "nonsense", Namespace: "system"},
		"MetaDelete 10":             &machineapi.MetaDeleteRequest{Key: 10},
		"MetaDelete 11":             &machineapi.MetaDeleteRequest{Key: 11},
		"MetaWrite 10":              &machineapi.MetaWriteRequest{Key: 10, Value: []byte("x")},
		"MetaWrite 300":             &machineapi.MetaWriteRequest{Key: 300, Value: []byte("x")},
		"Read /etc/os-release[0]":   &machineapi.ReadRequest{Path: "/etc/os-release"},
		"Read missing[0]":           &machineapi.ReadRequest{Path: "/etc/nonsense"},
		"ServiceRestart machined":   &machineapi.ServiceRestartRequest{Id: "machined"},
		"ServiceRestart nonsense":   &machineapi.ServiceRestartRequest{Id: "nonsense"},
		"ServiceStart etcd":         &machineapi.ServiceStartRequest{Id: "etcd"},
		"ServiceStop machined":      &machineapi.ServiceStopRequest{Id: "machined"},
		"ServiceStop nonsense":      &machineapi.ServiceStopRequest{Id: "nonsense"},
		"Upgrade bad reference":     &machineapi.UpgradeRequest{Image: "UPPER CASE"},
		"Upgrade empty":             &machineapi.UpgradeRequest{},
		"Upgrade nonsense image":    &machineapi.UpgradeRequest{Image: "10.0.0.77:5000/nonsense:v1"},
		"Events of when[0]":         &machineapi.EventsRequest{TailEvents: 3, TailSeconds: 1},
		"Events of when[1]":         &machineapi.EventsRequest{TailEvents: 3, TailSeconds: 1},
		"Events[0]":                 &machineapi.EventsRequest{TailEvents: -1},
		"Events[1]":                 &machineapi.EventsRequest{TailEvents: -1},
		"Events[2]":                 &machineapi.EventsRequest{TailEvents: -1},
		"Reset partitions + USER_DISKS": &machineapi.ResetRequest{
			Mode: machineapi.ResetRequest_USER_DISKS, SystemPartitionsToWipe: []*machineapi.ResetPartitionSpec{{Label: "STATE", Wipe: true}},
		},
		"Reset unknown partition": &machineapi.ResetRequest{
			SystemPartitionsToWipe: []*machineapi.ResetPartitionSpec{{Label: "NONSENSE", Wipe: true}},
		},
		"Reset unknown user disk": &machineapi.ResetRequest{
			Mode: machineapi.ResetRequest_USER_DISKS, UserDisksToWipe: []string{"/dev/nonsense"},
		},
		"Reset user disks + SYSTEM_DISK": &machineapi.ResetRequest{
			Mode: machineapi.ResetRequest_SYSTEM_DISK, UserDisksToWipe: []string{"/dev/nonsense"},
		},
	}
}

// ask makes a recorded call, and returns its answer as it is recorded.
func ask(ctx context.Context, c *client.Client, call string, limit time.Duration) []string {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	kind, what, _ := strings.Cut(call, " ")
	switch kind {
	case "List":
		return askList(ctx, c, what)
	case "Get":
		return askGet(ctx, c, what)
	case "COSI":
		err := c.COSI.Create(ctx, meta.NewNamespace("nonsense", meta.NamespaceSpec{}))
		if what == "Destroy machine status" {
			err = c.COSI.Destroy(ctx, runtime.NewMachineStatus().Metadata())
		}

		return []string{"ERR -: " + fmt.Sprint(err)}
	}
	ctx = withNodes(ctx, strings.Fields(what))
	method, _, _ := strings.Cut(kind, "[")
	for _, service := range []any{c.MachineClient, c.StorageClient, c.TimeClient} {
		if m := reflect.ValueOf(service).MethodByName(fullName(method)); m.IsValid() {
			return invoke(ctx, m, requests()[call], call)
		}
	}

	return []string{"the lab's API has no " + method}
}

func fullName(method string) string {
	if method == "Apply" {
		return "ApplyConfiguration"
	}

	return method
}

// withNodes adds what "node 10.5.0.77" and "nodes A nodes B" say; the lab's addresses are others.
func withNodes(ctx context.Context, words []string) context.Context {
	var one, all []string
	for i := 0; i+1 < len(words); i += 2 {
		address := "10.0.0.1"
		if strings.HasSuffix(words[i+1], ".77") {
			address = "10.0.0.77"
		}
		switch words[i] {
		case "node":
			one = append(one, address)
		case "nodes":
			all = append(all, address)
		}
	}
	for _, address := range one {
		ctx = metadata.AppendToOutgoingContext(ctx, "node", address)
	}
	if len(all) > 0 {
		ctx = client.WithNodes(ctx, all...)
	}

	return ctx
}

// invoke calls a method of a generated client. A stream's message is the one that the call's index says.
func invoke(ctx context.Context, m reflect.Value, request proto.Message, call string) []string {
	args := []reflect.Value{reflect.ValueOf(ctx)}
	if m.Type().NumIn() > 2 {
		if request == nil {
			request = reflect.New(m.Type().In(1).Elem()).Interface().(proto.Message) // of a generated client
		}
		args = append(args, reflect.ValueOf(request))
	}
	out := m.Call(args)
	if err, _ := out[1].Interface().(error); err != nil {
		return answerError(err)
	}
	recv := out[0].MethodByName("Recv")
	if !recv.IsValid() {
		return answerMessage(out[0].Interface())
	}
	index := 0
	if _, after, ok := strings.Cut(call, "["); ok {
		_, _ = fmt.Sscanf(after, "%d]", &index)
	}
	for i := 0; ; i++ {
		got := recv.Call(nil)
		if err, _ := got[1].Interface().(error); err != nil {
			if errors.Is(err, io.EOF) {
				return []string{fmt.Sprintf("EOF after %d", i)}
			}

			return answerError(err)
		}
		if i == index {
			return answerMessage(got[0].Interface())
		}
	}
}

func answerError(err error) []string {
	s := status.Convert(err)

	return strings.Split(fmt.Sprintf("ERR %s: %s", s.Code(), s.Message()), "\n")
}

func answerMessage(m any) []string {
	if e, ok := m.(*machineapi.Event); ok { // its content is named as no other message's
		return []string{"OK " + compact(map[string]any{"data": eventData(e), "id": e.GetId()})}
	}
	if list, ok := m.(*machineapi.ServiceListResponse); ok {
		return answerServices(list)
	}
	message, ok := m.(proto.Message)
	if !ok {
		return []string{fmt.Sprintf("no message: %T", m)}
	}
	content, err := protojson.Marshal(message)
	if err != nil {
		return []string{"no JSON: " + err.Error()}
	}
	var tree map[string]any
	_ = json.Unmarshal(content, &tree)
	if list, ok := tree["messages"].([]any); ok { // in the order of their arrival
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(metadataOf(a), metadataOf(b)) })
		for _, one := range list {
			sortIDs(one)
		}
	}

	return []string{"OK " + compact(tree)}
}

// metadataOf returns who sent a message.
func metadataOf(message any) string {
	tree, _ := message.(map[string]any)

	return compact(tree["metadata"])
}

// onMachines lists services and logs that Talos has none of in a container.
var onMachines = []string{"auditd", "dashboard", "kernel", "syslogd", "udevd"}

// sortIDs sorts the names of logs, which Talos lists in any order.
func sortIDs(message any) {
	tree, _ := message.(map[string]any)
	ids, ok := tree["ids"].([]any)
	if !ok {
		return
	}
	ids = slices.DeleteFunc(ids, func(id any) bool { return slices.Contains(onMachines, fmt.Sprint(id)) })
	tree["ids"] = ids
	slices.SortFunc(ids, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// answerServices returns a line for each service, without what it waited for, which depends on who was first.
func answerServices(list *machineapi.ServiceListResponse) []string {
	var lines []string
	for _, s := range list.GetMessages()[0].GetServices() {
		if slices.Contains(onMachines, s.GetId()) {
			continue
		}
		line := fmt.Sprintf("- %s %s healthy=%t unknown=%t:", s.GetId(), s.GetState(), s.GetHealth().GetHealthy(), s.GetHealth().GetUnknown())
		for _, e := range s.GetEvents().GetEvents() {
			if e.GetState() != "Waiting" {
				line += fmt.Sprintf(" [%s] %s", e.GetState(), e.GetMsg())
			}
		}
		lines = append(lines, line)
	}

	return append([]string{"OK"}, lines...)
}

// eventData returns what an event holds, with its type.
func eventData(e *machineapi.Event) map[string]any {
	tree := map[string]any{}
	_, name, _ := strings.Cut(strings.TrimPrefix(e.GetData().GetTypeUrl(), "talos/"), "/")
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		return tree // the first event has none
	}
	message := kind.New().Interface()
	if err := proto.Unmarshal(e.GetData().GetValue(), message); err == nil {
		content, _ := protojson.Marshal(message)
		_ = json.Unmarshal(content, &tree)
	}
	tree["@type"] = e.GetData().GetTypeUrl()

	return tree
}

// compact returns JSON with sorted keys.
func compact(tree any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(tree)

	return strings.TrimSpace(b.String())
}

func askList(ctx context.Context, c *client.Client, what string) []string {
	if strings.HasPrefix(what, "/") {
		return invoke(ctx, reflect.ValueOf(c.MachineClient).MethodByName("List"), nil, "List "+what)
	}
	what, nodes, _ := strings.Cut(what, " ")
	ctx = withNodes(ctx, strings.Fields(nodes))
	namespace, kind, _ := strings.Cut(what, "/")
	list, err := c.COSI.List(ctx, resource.NewMetadata(namespace, kind, "", resource.VersionUndefined))
	if err != nil {
		return answerError(err)
	}

	return answerResources(list.Items)
}

func answerResources(items []resource.Resource) []string {
	slices.SortFunc(items, func(a, b resource.Resource) int { return strings.Compare(a.Metadata().ID(), b.Metadata().ID()) })
	lines := []string{fmt.Sprintf("OK %d items", len(items))}
	for _, r := range items {
		var tree any
		content, err := yaml.Marshal(r.Spec())
		if err == nil {
			err = yaml.Unmarshal(content, &tree)
		}
		if err != nil {
			tree = err.Error()
		}
		lines = append(lines, fmt.Sprintf("- %s owner=%s phase=%s: %s",
			r.Metadata().ID(), r.Metadata().Owner(), r.Metadata().Phase(), compact(tree)))
	}

	return lines
}

func askGet(ctx context.Context, c *client.Client, what string) []string {
	what, _, _ = strings.Cut(what, " ")
	parts := strings.SplitN(what, "/", 3)
	r, err := c.COSI.Get(ctx, resource.NewMetadata(parts[0], parts[1], parts[2], resource.VersionUndefined))
	if err != nil {
		return []string{"ERR -: " + err.Error()}
	}

	return answerResources([]resource.Resource{r})
}
