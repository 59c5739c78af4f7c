// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package githost

import (
	"reflect"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// The types are written out as the plugins' schemas have them: the SDKs of these plugins are many
// times as large as what is used of them.

type githubConfig struct {
	BaseURL *string `pulumi:"baseUrl"`
	Owner   *string `pulumi:"owner"`
	Token   *string `pulumi:"token"`
}

type githubKeyArgs struct {
	Key        string `pulumi:"key"`
	ReadOnly   *bool  `pulumi:"readOnly"`
	Repository string `pulumi:"repository"`
	Title      string `pulumi:"title"`
}

type githubKey struct {
	Key        pulumi.StringOutput  `pulumi:"key"`
	ReadOnly   pulumi.BoolPtrOutput `pulumi:"readOnly"`
	Repository pulumi.StringOutput  `pulumi:"repository"`
	Title      pulumi.StringOutput  `pulumi:"title"`
}

type gitlabConfig struct {
	BaseURL *string `pulumi:"baseUrl"`
	Token   *string `pulumi:"token"`
}

type gitlabKeyArgs struct {
	CanPush *bool  `pulumi:"canPush"`
	Key     string `pulumi:"key"`
	Project string `pulumi:"project"`
	Title   string `pulumi:"title"`
}

type gitlabKey struct {
	CanPush pulumi.BoolPtrOutput `pulumi:"canPush"`
	Key     pulumi.StringOutput  `pulumi:"key"`
	Project pulumi.StringOutput  `pulumi:"project"`
	Title   pulumi.StringOutput  `pulumi:"title"`
}

type localCommandArgs struct {
	Create      *string           `pulumi:"create"`
	Delete      *string           `pulumi:"delete"`
	Dir         *string           `pulumi:"dir"`
	Environment map[string]string `pulumi:"environment"`
	Interpreter []string          `pulumi:"interpreter"`
	Logging     *string           `pulumi:"logging"`
	Stdin       *string           `pulumi:"stdin"`
	Triggers    []any             `pulumi:"triggers"`
	Update      *string           `pulumi:"update"`
}

type localCommand struct {
	Create      pulumi.StringPtrOutput   `pulumi:"create"`
	Delete      pulumi.StringPtrOutput   `pulumi:"delete"`
	Dir         pulumi.StringPtrOutput   `pulumi:"dir"`
	Environment pulumi.StringMapOutput   `pulumi:"environment"`
	Interpreter pulumi.StringArrayOutput `pulumi:"interpreter"`
	Logging     pulumi.StringPtrOutput   `pulumi:"logging"`
	Stderr      pulumi.StringOutput      `pulumi:"stderr"`
	Stdin       pulumi.StringPtrOutput   `pulumi:"stdin"`
	Stdout      pulumi.StringOutput      `pulumi:"stdout"`
	Triggers    pulumi.ArrayOutput       `pulumi:"triggers"`
	Update      pulumi.StringPtrOutput   `pulumi:"update"`
}

// Inputs, as the bridge reads them off an SDK.
type (
	githubConfigInput struct{}
	githubKeyInput    struct{}
	gitlabConfigInput struct{}
	gitlabKeyInput    struct{}
	localCommandInput struct{}
	noConfigInput     struct{}
)

func (githubConfigInput) ElementType() reflect.Type { return reflect.TypeFor[githubConfig]() }
func (githubKeyInput) ElementType() reflect.Type    { return reflect.TypeFor[githubKeyArgs]() }
func (gitlabConfigInput) ElementType() reflect.Type { return reflect.TypeFor[gitlabConfig]() }
func (gitlabKeyInput) ElementType() reflect.Type    { return reflect.TypeFor[gitlabKeyArgs]() }
func (localCommandInput) ElementType() reflect.Type { return reflect.TypeFor[localCommandArgs]() }
func (noConfigInput) ElementType() reflect.Type     { return reflect.TypeFor[struct{}]() }
