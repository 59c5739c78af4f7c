// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Kubeflags lists the flags and feature gates of Kubernetes' programs and of etcd, with the kind of value each takes, from
// their sources in the module cache. Name every release that a stack may run; a flag is listed when one of them has it:
//
//	go run ./hack/kubeflags 1.30.14 1.32.13 1.33.9 1.35.4 1.36.3 1.37.1 > internal/rules/talos/flags.txt
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// shared are the sources of flags that several programs have; %s is a release without its major version.
var shared = []string{
	"k8s.io/component-base@v0.%s/logs/api", "k8s.io/component-base@v0.%s/metrics", "k8s.io/component-base@v0.%s/cli/globalflag",
	"k8s.io/component-base@v0.%s/featuregate", "k8s.io/component-base@v0.%s/version/verflag", "k8s.io/component-base@v0.%s/config/options",
	"k8s.io/component-base@v0.%s/compatibility", "k8s.io/component-base@v0.%s/zpages",
}

const serving = "k8s.io/apiserver@v0.%s/pkg/server/options"

var programs = map[string][]string{
	"apiServer": append([]string{
		"k8s.io/kubernetes@v1.%s/cmd/kube-apiserver/app/options", "k8s.io/kubernetes@v1.%s/pkg/kubeapiserver/options",
		"k8s.io/kubernetes@v1.%s/pkg/controlplane/apiserver/options", "k8s.io/apiserver@v0.%s/pkg/admission", serving,
		"k8s.io/kubernetes@v1.%s/plugin/pkg/admission/defaulttolerationseconds",
	}, shared...),
	"controllerManager": append([]string{
		"k8s.io/kubernetes@v1.%s/cmd/kube-controller-manager/app/options", "k8s.io/cloud-provider@v0.%s/options",
		"k8s.io/controller-manager@v0.%s/options", serving,
	}, shared...),
	"scheduler": append([]string{"k8s.io/kubernetes@v1.%s/cmd/kube-scheduler/app/options", serving}, shared...),
	"proxy":     append([]string{"k8s.io/kubernetes@v1.%s/cmd/kube-proxy/app"}, shared...),
	"kubelet": append([]string{"k8s.io/kubernetes@v1.%s/cmd/kubelet/app/options", "k8s.io/kubernetes@v1.%s/pkg/credentialprovider",
		"k8s.io/kubernetes@v1.%s/pkg/kubelet/config"}, shared...),
}

var (
	method = regexp.MustCompile(`^(String|Bool|Int|Int32|Int64|Uint|Uint32|Uint64|Float32|Float64|Duration|` +
		`StringSlice|StringArray|StringToString|IP|IPNet|IPSlice|IntSlice)?(Var)?P?$`)
	name = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
)

func main() {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	root := strings.TrimSpace(string(cache))
	lines := map[string]bool{}
	for _, release := range os.Args[1:] {
		_, minor, _ := strings.Cut(release, ".")
		for program, places := range programs {
			for _, place := range places {
				gather(filepath.Join(root, fmt.Sprintf(place, minor)), program, lines)
			}
		}
	}
	etcds, _ := filepath.Glob(filepath.Join(root, "go.etcd.io/etcd/server/v3@*"))
	for _, etcd := range etcds {
		gather(filepath.Join(etcd, "embed"), "etcd", lines)
		gather(filepath.Join(etcd, "etcdmain"), "etcd", lines)
	}
	for _, release := range os.Args[1:] {
		_, minor, _ := strings.Cut(release, ".")
		for _, place := range gates {
			gatherGates(filepath.Join(root, fmt.Sprintf(place, minor)), lines)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		fmt.Println(line)
	}
}

// gates are the sources of feature gates, which all programs know.
var gates = []string{
	"k8s.io/kubernetes@v1.%s/pkg/features", "k8s.io/apiserver@v0.%s/pkg/features", "k8s.io/component-base@v0.%s",
	"k8s.io/kubernetes@v1.%s/cmd", "k8s.io/controller-manager@v0.%s/pkg/features", "k8s.io/cloud-provider@v0.%s",
	"k8s.io/client-go@v0.%s/features",
	"k8s.io/apiextensions-apiserver@v0.%s/pkg/features",
}

var gate = regexp.MustCompile(`featuregate\.Feature = "([A-Za-z0-9]+)"|\bFeature = "([A-Za-z0-9]+)"`)

// gatherGates adds the feature gates that the files below a directory define.
func gatherGates(directory string, lines map[string]bool) {
	_ = filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil //nolint:nilerr // a release may lack the directory
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range gate.FindAllStringSubmatch(string(text), -1) {
			lines["featureGates "+m[1]+m[2]+" bool"] = true
		}

		return nil
	})
}

// gather adds the flags that the files below a directory define.
func gather(directory, program string, lines map[string]bool) {
	_ = filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil //nolint:nilerr // a release may lack the directory
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		constants := constantsOf(file)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if flag, kind := flagOf(call, constants); flag != "" {
					lines[program+" "+flag+" "+kind] = true
				}
			}

			return true
		})

		return nil
	})
}

// constantsOf returns the texts that a file has names for.
func constantsOf(file *ast.File) map[string]string {
	all := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range spec.Values {
			if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING && i < len(spec.Names) {
				all[spec.Names[i].Name], _ = strconv.Unquote(literal.Value)
			}
		}

		return true
	})

	return all
}

// flagOf returns the flag that a call defines, and the kind of its value.
func flagOf(call *ast.CallExpr, constants map[string]string) (flag, kind string) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) < 3 {
		return "", ""
	}
	m := method.FindStringSubmatch(selector.Sel.Name)
	if m == nil || m[1] == "" && m[2] == "" {
		return "", ""
	}
	for _, arg := range call.Args[:min(2, len(call.Args))] {
		if constant, ok := arg.(*ast.Ident); ok && name.MatchString(constants[constant.Name]) {
			return constants[constant.Name], kindOf(m[1])
		}
		literal, ok := arg.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && name.MatchString(text) {
			return text, kindOf(m[1])
		}
	}

	return "", ""
}

func kindOf(method string) string {
	switch {
	case method == "Bool", method == "Duration":
		return strings.ToLower(method)
	case strings.HasSuffix(method, "Slice"), strings.HasSuffix(method, "Array"), strings.HasPrefix(method, "String"), method == "":
		return "text"
	case strings.HasPrefix(method, "Int"), strings.HasPrefix(method, "Uint"):
		return "number"
	case strings.HasPrefix(method, "Float"):
		return "fraction"
	case method == "IP":
		return "address"
	default:
		return "text"
	}
}
