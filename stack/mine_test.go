// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// mine is how TestMine is asked for: go test ./stack -run TestMine -mine 10m.
var mine = flag.Duration("mine", 0, "for how long to generate broken stacks and write the smallest of each rule to testdata/generated.txt")

var mineLog = flag.String("mine-log", "", "where to write every edit that is tried, with what is told of it: what passes is worth reading")

// rulebook tells of which rules problems are.
type rulebook struct {
	all  []message
	lock sync.Mutex
	seen map[string][]int
}

func newRulebook(t *testing.T) *rulebook {
	t.Helper()
	rules, _ := messagesOf(t, "../internal/rules")
	own, _ := messagesOf(t, ".")
	b := &rulebook{seen: map[string][]int{}}
	for _, m := range slices.Concat(rules, own) {
		if !slices.Contains(elsewhere, m.form.String()) {
			b.all = append(b.all, m)
		}
	}

	return b
}

// of returns the numbers of the rules that say a message.
func (b *rulebook) of(text string) []int {
	b.lock.Lock()
	defer b.lock.Unlock()
	if known, ok := b.seen[text]; ok {
		return known
	}
	var found []int
	for i, m := range b.all {
		if m.form.MatchString(text) {
			found = append(found, i)
		}
	}
	b.seen[text] = found

	return found
}

// found is an edit that breaks a rule, with where that is told: "several" where it breaks more than one.
type found struct {
	mistake
	cost int
}

// miner gathers the smallest edit that breaks each rule.
type miner struct {
	t     *testing.T
	book  *rulebook
	end   time.Time
	lock  sync.Mutex
	best  map[int]found
	right map[string][]mistake
	tried int
	notes func(kind string, m mistake, problems []spec.Problem)
}

// try loads a stack, and notes which rules it breaks.
func (w *miner) try(dir string, m mistake) []spec.Problem {
	problems, ok := loadIn(w.t, dir, m)
	if !ok {
		return nil
	}
	m.at = "several"
	if len(problems) == 1 {
		m.at = problems[0].Path
	}
	w.lock.Lock()
	w.tried++
	for _, p := range problems {
		for _, i := range w.book.of(p.Message) {
			cost := 10000*len(problems) + 1000*len(m.edits) + len(strings.Join(m.edits, ";"))
			if old, known := w.best[i]; !known || cost < old.cost {
				w.best[i] = found{m, cost}
			}
		}
	}
	w.lock.Unlock()
	if w.notes != nil {
		w.notes([]string{"right", "one", "several"}[min(len(problems), 2)], m, problems)
	}

	return problems
}

// load1 returns what the rules say of a stack; false where it cannot be written.
func load1(t testing.TB, m mistake) ([]spec.Problem, bool) {
	t.Helper()

	return loadIn(t, t.TempDir(), m)
}

// loadIn returns what the rules say of a stack whose project is a directory; false where it cannot be written.
func loadIn(t testing.TB, dir string, m mistake) ([]spec.Problem, bool) {
	t.Helper()
	text, err := yaml.Marshal(m.file(t, dir))
	require.NoError(t, err)
	s, err := stack.SourceOf("test", text, func(_, secure string) string { return secure })
	if err != nil {
		return nil, false
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Pulumi.test.yaml"), text, 0o600))
	s.Dir = dir
	s.Environment = func(string) string { return "" }
	if _, ships := shipped[m.base]; ships {
		s.Environment = nil // how Proxmox VE is reached stands in the environment
	}
	_, err = stack.Load(s)
	var invalid *spec.InvalidError
	if errors.As(err, &invalid) {
		return invalid.Problems, true
	}
	require.NoError(t, err)

	return nil, true
}

// each tries mistakes on all processors until the time is over.
func (w *miner) each(all []mistake, visit func(dir string, m mistake)) {
	var wait sync.WaitGroup
	work := make(chan mistake)
	for range runtime.NumCPU() {
		dir := w.t.TempDir()
		wait.Go(func() {
			for m := range work {
				visit(dir, m)
			}
		})
	}
	for _, m := range all {
		if time.Now().After(w.end) {
			break
		}
		work <- m
	}
	close(work)
	wait.Wait()
}

// smaller tries to leave out one edit after another of a stack that breaks a rule.
func (w *miner) smaller(dir string, m mistake) {
	for i := 0; i < len(m.edits) && len(m.edits) > 1; i++ {
		less := mistake{base: m.base, edits: slices.Delete(slices.Clone(m.edits), i, i+1)}
		if problems := w.try(dir, less); len(problems) > 0 {
			w.smaller(dir, less)

			return
		}
	}
}

// groups puts right edits together, some at a time: where they are refused, it looks for the smallest part that is.
func (w *miner) groups(count int) []mistake {
	random := rand.New(rand.NewPCG(2, 2)) //nolint:gosec // the same groups each time
	var all []mistake
	for range count {
		for _, base := range slices.Sorted(maps.Keys(w.right)) {
			m := mistake{base: base}
			for range 6 {
				one := w.right[base][random.IntN(len(w.right[base]))]
				m.edits = append(m.edits, one.edits...)
			}
			all = append(all, m)
		}
	}

	return all
}

// aimed is an edit that is made for one rule.
type aimed struct {
	mistake
	rule int
}

// directed returns edits of the settings of which the function of a rule speaks, with the words that stand there.
func (w *miner) directed(stacks []mistake, pool values, tries int) []aimed {
	random := rand.New(rand.NewPCG(3, 3)) //nolint:gosec // the same edits each time
	keys := spec.KeysOf(reflect.TypeFor[stack.File](), "")
	lists := make([][]aimed, 0, len(w.book.all))
	for i, rule := range w.book.all {
		if _, done := w.best[i]; done {
			continue
		}
		words, fields := hintsOf(w.t, rule.at)
		candidates := map[string][]any{}
		for _, k := range keys {
			if path, ok := placed(k.Path); ok && fields[k.Field] {
				candidates[path] = slices.Concat(wordValues(random, k, words), typed(k), keyEdges(k), pool.of(path))
			}
		}
		paths := slices.Sorted(maps.Keys(candidates))
		if len(paths) == 0 {
			continue
		}
		var one []aimed
		for try := range tries {
			m := mistake{base: "rich"}
			if try%3 == 2 {
				m = stacks[random.IntN(len(stacks))]
				m = mistake{base: m.base, edits: slices.Clone(m.edits)}
			}
			for range 1 + try%2 {
				path := paths[random.IntN(len(paths))]
				for block, needed := range around {
					if strings.HasPrefix(path, block+".") {
						m.edits = append(m.edits, needed)
					}
				}
				if of := candidates[path]; len(of) > 0 {
					m.edits = append(m.edits, editOf(path, of[random.IntN(len(of))]))
				}
			}
			one = append(one, aimed{m, i})
		}
		lists = append(lists, one)
	}
	var all []aimed
	for try := range tries {
		for _, one := range lists {
			all = append(all, one[try])
		}
	}

	return all
}

// keyEdges returns values of a mapping whose keys the user chooses, with keys at the edges, and with more entries than there may be.
func keyEdges(k spec.Key) []any {
	if k.Type.Kind() != reflect.Map && !(k.Type.Kind() == reflect.Slice && spec.HoldsSettings(k.Type.Elem())) {
		return nil
	}
	var value any = "x"
	switch e := k.Type.Elem(); {
	case e.Kind() == reflect.Slice:
		value = []any{"x"}
	case e.Kind() == reflect.Int:
		value = 1
	case e == reflect.TypeFor[spec.Secret]():
		value = block{"secure": "x"}
	case spec.HoldsSettings(e):
		filled := block{}
		for _, f := range spec.Fields(e) {
			if below := typed(spec.Key{Path: f.Name, Type: f.Type, Enum: f.Enum}); f.Required && len(below) > 0 {
				filled[f.Name] = below[0]
			}
		}
		value = filled
	}
	if k.Type.Kind() == reflect.Slice {
		return []any{[]any{value}, []any{value, value}, slices.Repeat([]any{value}, 40)}
	}
	all := []any{}
	for _, key := range []any{"", "a b", "x/y", "A_b", "-x", "x.y", "a:b", "*", "x=y", "10.0.0.300", "DOCKER.IO", "harbor.example.com:443", "w-1", "cp-1"} {
		all = append(all, block{fmt.Sprint(key): value})
	}
	many := block{}
	for i := range 40 {
		many[fmt.Sprintf("n%d", i)] = value
	}

	return append(all, many)
}

// misplaced returns edits that put settings where a stack file has none: without the project's name, under another one, beside the
// configuration.
func misplaced(tree map[string]any) []mistake {
	var all []mistake
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		for _, place := range []string{"KEY " + name, "KEY talos-promox:" + name, "KEY proxmoxve:" + name, "TOP talos-proxmox:" + name, "TOP " + name,
			"KEY talos-proxmox:" + name + ".name", "KEY talos-proxmox:" + name + "s"} {
			all = append(all, mistake{base: "rich", edits: []string{editOf(place, tree[name])}})
		}
	}

	return all
}

// clones returns right stacks in which a node of a right stack stands once more, with an id and addresses of its own: all else it
// has in common with the other.
func clones(t testing.TB, stacks []mistake) []mistake {
	var all []mistake
	for _, m := range stacks {
		node, ok := valueAt(m.tree(t), "nodes.w-1")
		if !ok || m.base != "rich" || !slices.ContainsFunc(m.edits, func(e string) bool { return strings.HasPrefix(e, "nodes.w-1") }) {
			continue
		}
		clone := maps.Clone(node.(map[string]any))
		clone["vmId"] = 909
		nets := block{}
		if of, ok := clone["networks"].(map[string]any); ok {
			for name, n := range of {
				n, _ := n.(map[string]any)
				n = maps.Clone(n)
				delete(n, "address6")
				if a, _ := n["address"].(string); strings.HasPrefix(a, "10.") {
					n["address"] = a[:strings.LastIndexByte(a, '.')] + ".99"
				}
				nets[name] = n
			}
		}
		clone["networks"] = nets
		all = append(all, mistake{base: m.base, edits: append(slices.Clone(m.edits), editOf("nodes.w-9", clone))})
	}

	return all
}

// shared returns edits that write a setting of one node where it is for several.
func shared(t testing.TB, stacks []mistake) []mistake {
	var all []mistake
	pool := editOf("pools", block{"w": block{"role": "worker", "count": 1, "networks": block{
		"lan": block{"address": "10.0.0.31"}, "stor": block{"address": "10.1.0.31"}}}})
	for _, m := range stacks {
		for _, e := range m.edits {
			path, value, _ := strings.Cut(e, "=")
			below, ok := strings.CutPrefix(path, "nodes.w-1")
			if !ok || below == "" || m.base != "rich" {
				continue
			}
			for _, place := range []string{"defaults.all", "defaults.worker", "defaults.controlPlane"} {
				all = append(all, mistake{base: "rich", edits: []string{place + below + "=" + value}})
			}
			all = append(all,
				mistake{base: "rich", edits: []string{"cluster.vmIdBase=300", pool, "pools.w" + below + "=" + value}},
				mistake{base: "rich", edits: []string{"sizes.big" + below + "=" + value, `nodes.w-1.size="big"`}})
		}
	}
	for _, k := range spec.KeysOf(reflect.TypeFor[stack.File](), "") {
		for _, place := range []string{"pools.*.", "sizes.*.", "defaults.all."} {
			below, ok := strings.CutPrefix(k.Path, place)
			if !ok || strings.ContainsAny(below, "*[") {
				continue
			}
			for _, v := range slices.Concat(typed(k), keyEdges(k)) {
				switch place {
				case "pools.*.":
					all = append(all, mistake{base: "rich", edits: []string{"cluster.vmIdBase=300", pool, editOf("pools.w."+below, v)}})
				case "sizes.*.":
					all = append(all, mistake{base: "rich", edits: []string{editOf("sizes.big."+below, v), `nodes.w-1.size="big"`}})
				default:
					all = append(all, mistake{base: "rich", edits: []string{editOf("defaults.all."+below, v)}})
				}
			}
		}
	}

	return all
}

// wordValues returns values of a key that are made of words.
func wordValues(random *rand.Rand, k spec.Key, words []string) []any {
	if len(words) == 0 {
		return nil
	}
	word := func() string { return words[random.IntN(len(words))] }
	scalar := func() any {
		return []any{word(), "x", "0", "1", "-1", "true", "false", "", 0, 1, -1, true, false, "10%", "100"}[random.IntN(15)]
	}
	var all []any
	for range 12 {
		switch t := k.Type; {
		case t == reflect.TypeFor[spec.Secret]():
			all = append(all, block{"secure": word()})
		case t == reflect.TypeFor[spec.Text]():
			all = append(all, word(), block{word(): scalar()}, block{word(): block{word(): scalar()}}, block{word(): scalar(), word(): scalar()},
				block{word(): []any{word()}})
		case t.Kind() == reflect.String:
			all = append(all, word())
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
			all = append(all, []any{word()}, []any{word(), word()}, []any{word() + "=" + word()})
		case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.String:
			all = append(all, block{word(): fmt.Sprint(scalar())}, block{word(): word(), word(): fmt.Sprint(scalar())})
		case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Slice:
			all = append(all, block{word(): []any{}}, block{word(): []any{word()}})
		case t.Kind() == reflect.Map:
			all = append(all, block{word(): someSettings(random, t.Elem())})
		case t.Kind() == reflect.Slice:
			all = append(all, []any{someSettings(random, t.Elem())})
		}
	}

	return all
}

// someSettings returns a block in which some settings of a type are written.
func someSettings(random *rand.Rand, t reflect.Type) block {
	one := block{}
	if !spec.HoldsSettings(t) {
		return one
	}
	for _, f := range spec.Fields(t) {
		if below := typed(spec.Key{Path: f.Name, Type: f.Type, Enum: f.Enum}); len(below) > 0 && random.IntN(2) == 0 {
			one[f.Name] = below[random.IntN(len(below))]
		}
	}

	return one
}

// hints are the words and the names of fields that stand in functions.
type hints struct {
	declared map[string]ast.Node
	visited  map[string]bool
	words    map[string]bool
	fields   map[string]bool
}

// gather adds what stands in a declaration, and to a depth in those that it names.
func (h *hints) gather(n ast.Node, depth int) {
	follow := func(name string) {
		if d, ok := h.declared[name]; ok && depth > 0 && !h.visited[name] {
			h.visited[name] = true
			h.gather(d, depth-1)
		}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && !strings.ContainsAny(text, " %") {
				h.words[text] = true
			}
		case *ast.SelectorExpr:
			h.fields[n.Sel.Name] = true
			follow(n.Sel.Name)
		case *ast.Ident:
			follow(n.Name)
		}

		return true
	})
}

// hintsOf returns the words and the names of fields in the function around a place of the sources, in what it names of its package,
// and in what calls it.
func hintsOf(t *testing.T, at string) (words []string, fields map[string]bool) {
	t.Helper()
	declared, around := declarations(t, at)
	h := &hints{declared, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	if around == nil {
		return nil, nil
	}
	h.gather(around, 1)
	for _, d := range declared {
		if calls(d, around.Name.Name) {
			h.gather(d, 0)
		}
	}

	return slices.Sorted(maps.Keys(h.words)), h.fields
}

// declarations returns what the package around a place of the sources declares, and the function there.
func declarations(t *testing.T, at string) (declared map[string]ast.Node, around *ast.FuncDecl) {
	t.Helper()
	name, number, _ := strings.Cut(at, ".go:")
	line, err := strconv.Atoi(number)
	require.NoError(t, err)
	files := token.NewFileSet()
	sources, err := filepath.Glob(filepath.Dir(name) + "/*.go")
	require.NoError(t, err)
	declared = map[string]ast.Node{}
	for _, source := range sources {
		file, err := parser.ParseFile(files, source, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				declared[d.Name.Name] = d
				first, last := files.Position(d.Pos()).Line, files.Position(d.End()).Line
				if filepath.Base(source) == filepath.Base(name)+".go" && first <= line && line <= last {
					around = d
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						declared[v.Names[0].Name] = v
					}
				}
			}
		}
	}

	return declared, around
}

// calls reports whether a declaration calls a function.
func calls(d ast.Node, name string) bool {
	found := false
	ast.Inspect(d, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			switch fun := c.Fun.(type) {
			case *ast.Ident:
				found = found || fun.Name == name
			case *ast.SelectorExpr:
				found = found || fun.Sel.Name == name
			}
		}

		return true
	})

	return found
}

// TestMine generates broken stacks for a time, and writes the smallest of each rule.
func TestMine(t *testing.T) {
	if *mine == 0 {
		t.Skip("only with -mine")
	}
	start := time.Now()
	w := &miner{t: t, book: newRulebook(t), best: map[int]found{}, right: map[string][]mistake{}}
	if *mineLog != "" {
		log, err := os.Create(*mineLog)
		require.NoError(t, err)
		w.notes = func(kind string, m mistake, problems []spec.Problem) {
			text := kind + "\t" + m.base + "\t" + strings.Join(m.edits, " ;; ")
			for _, p := range problems {
				text += "\t" + strings.ReplaceAll(p.String(), "\n", " ")
			}
			_, _ = log.WriteString(text + "\n")
		}
	}
	phase := func(name string, share float64, all []mistake, visit func(dir string, m mistake)) {
		w.end = start.Add(time.Duration(share * float64(*mine)))
		before := w.tried
		w.each(all, visit)
		t.Logf("%s: %d of %d edits tried, %d of %d rules broken", name, w.tried-before, len(all), len(w.best), len(w.book.all))
		w.write()
	}
	if _, err := os.Stat("testdata/generated.txt"); err == nil {
		phase("known", 0.9, mistakesIn(t, "testdata/generated.txt"), func(dir string, m mistake) { w.try(dir, mistake{base: m.base, edits: m.edits}) })
	}
	stacks := rightStacks(t)
	pool := valuesOf(t, stacks)
	visit := func(dir string, m mistake) {
		if len(w.try(dir, m)) > 0 {
			w.smaller(dir, m)
		}
	}
	phase("misplaced", 0.1, misplaced(mistake{base: "rich"}.tree(t)), visit)
	phase("clones", 0.15, clones(t, stacks), visit)
	random := rand.New(rand.NewPCG(uint64(start.Unix()), 1)) //nolint:gosec // parts of all, others each time
	shuffled := func(all []mistake) []mistake {
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })

		return all
	}
	phase("shared", 0.25, shuffled(shared(t, stacks)), visit)
	aims := w.directed(stacks, pool, 120)
	rules := map[string]int{}
	var all []mistake
	for _, a := range aims {
		rules[a.base+strings.Join(a.edits, ";")] = a.rule
		all = append(all, a.mistake)
	}
	phase("directed", 0.7, all, func(dir string, m mistake) {
		w.lock.Lock()
		_, done := w.best[rules[m.base+strings.Join(m.edits, ";")]]
		w.lock.Unlock()
		if !done {
			visit(dir, m)
		}
	})
	phase("singles", 0.9, shuffled(singleEdits(t, stacks)), func(dir string, m mistake) {
		if problems := w.try(dir, m); len(problems) == 0 && len(m.edits) == 1 {
			w.lock.Lock()
			w.right[m.base] = append(w.right[m.base], m)
			w.lock.Unlock()
		}
	})
	phase("groups", 1, w.groups(1000), visit)
	w.writeByHand()
}

// writeByHand writes the rules that no generated edit breaks, each with what the edits that a person wrote for it need.
func (w *miner) writeByHand() {
	generated := map[string]bool{}
	for i := range w.best {
		generated[w.book.all[i].form.String()] = true
	}
	reasons := map[string]string{}
	for _, m := range mistakes(w.t) {
		for _, p := range m.problems(w.t) {
			for _, i := range w.book.of(p.Message) {
				form, reason := w.book.all[i].form.String(), reasonOf(m)
				if old, known := reasons[form]; !known || reason < old {
					reasons[form] = reason
				}
			}
		}
	}
	var lines []string
	for _, rule := range w.book.all {
		form := rule.form.String()
		if generated[form] {
			continue
		}
		reason, known := reasons[form]
		if !known {
			reason = "needs what the cases of testdata/rules write"
		}
		lines = append(lines, form+" @@ "+reason)
	}
	slices.Sort(lines)
	text := "# Rules that no generated edit breaks, by the form of what they say, with what breaking them needs. TestMine writes this.\n\n" +
		strings.Join(slices.Compact(lines), "\n") + "\n"
	require.NoError(w.t, os.WriteFile("testdata/byhand.txt", []byte(text), 0o600))
}

// reasonOf returns what an edit that a person wrote needs, which generation does not make.
func reasonOf(m mistake) string {
	all := strings.Join(m.edits, " ")
	has := func(prefix string) bool {
		return slices.ContainsFunc(m.edits, func(e string) bool { return strings.HasPrefix(e, prefix) })
	}
	switch {
	case has("FILE "):
		return "needs a file of the project with a certain text"
	case has("ENV "):
		return "needs a variable of the environment"
	case has("TOP "), has("KEY "):
		return "needs what is no setting, at a certain place"
	case strings.Contains(all, "secure"):
		return "needs a credential of a certain form"
	case len(m.edits) > 1:
		return "needs several settings at once, each of which is right alone"
	case strings.Count(all, ":") > 2:
		return "needs a block of several values that do not go together"
	default:
		return "needs a text of a certain form that no right stack has"
	}
}

// write writes the smallest edits of all rules, each once.
func (w *miner) write() {
	lines := map[string][]string{}
	for _, f := range w.best {
		lines[f.base] = append(lines[f.base], strings.Join(f.edits, " ;; ")+" @@ "+f.at)
	}
	var text strings.Builder
	text.WriteString("# The smallest edits that break each rule, generated by TestMine from the types, from right stacks and from what the rules relate.\n")
	for _, base := range slices.Sorted(maps.Keys(lines)) {
		slices.Sort(lines[base])
		text.WriteString("\nBASE " + base + "\n" + strings.Join(slices.Compact(lines[base]), "\n") + "\n")
	}
	require.NoError(w.t, os.WriteFile("testdata/generated.txt", []byte(text.String()), 0o600))
}
