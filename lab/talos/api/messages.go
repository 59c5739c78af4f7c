// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// newMessage returns an empty request or reply of a method.
func newMessage(method string, request bool) (proto.Message, error) {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	md, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}

	typ := md.Output()
	if request {
		typ = md.Input()
	}
	mt, err := protoregistry.GlobalTypes.FindMessageByName(typ.FullName())
	if err != nil {
		return nil, status.Errorf(codes.Internal, "message %s: %s", typ.FullName(), err)
	}

	return mt.New().Interface(), nil
}

// errorReply returns a reply that holds only an error.
func errorReply(method string, err error) (proto.Message, error) {
	m, buildErr := newMessage(method, false)
	if buildErr != nil {
		return nil, buildErr
	}
	field := m.ProtoReflect().Descriptor().Fields().ByName("messages")
	if field == nil {
		return nil, err
	}
	list := m.ProtoReflect().Mutable(field).List()
	e := list.AppendMutable().Message().Interface()
	setMetadata(e, "", err)

	return m, nil
}

// setHostname tells in every message of a reply which node it comes from.
func setHostname(m proto.Message, hostname string) {
	field := m.ProtoReflect().Descriptor().Fields().ByName("messages")
	if field == nil || !field.IsList() {
		return
	}
	list := m.ProtoReflect().Mutable(field).List()
	for i := range list.Len() {
		setMetadata(list.Get(i).Message().Interface(), hostname, nil)
	}
}

func setMetadata(m proto.Message, hostname string, err error) {
	field := m.ProtoReflect().Descriptor().Fields().ByName("metadata")
	if field == nil || field.Message() == nil {
		return
	}
	md, ok := m.ProtoReflect().Mutable(field).Message().Interface().(*common.Metadata)
	if !ok {
		return
	}
	if hostname != "" {
		md.Hostname = hostname
	}
	if err != nil {
		md.Error = err.Error()
		md.Status = status.Convert(err).Proto()
	}
}
