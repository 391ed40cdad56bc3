package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// modulePath is how our own imports begin.
const modulePath = "github.com/weirflow/weir"

// Tree is the repository as the rules see it.
type Tree struct {
	Go    []*GoFile         // of the main module, by path
	Texts map[string][]byte // every text file by path, of all modules and testdata too
	// OtherModules are the directories that hold a go.mod of their own.
	OtherModules []string
}

// GoFile is one parsed file of the main module.
type GoFile struct {
	Path      string // slash-separated, relative to the root
	Package   string // the directory: "" is the root package
	Test      bool   // _test.go
	Generated bool
	AST       *ast.File
	fset      *token.FileSet
}

// line is the line number of a position.
func (f *GoFile) line(p token.Pos) int { return f.fset.Position(p).Line }

// at names a place for a complaint.
func (f *GoFile) at(n ast.Node) string { return fmt.Sprintf("%s:%d", f.Path, f.line(n.Pos())) }

// imports returns the imported paths by the name that the file knows them under.
func (f *GoFile) imports() map[string]string {
	m := make(map[string]string)
	for _, spec := range f.AST.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		m[name] = p
	}
	return m
}

// textEndings are of files that are read as text.
var textEndings = []string{".go", ".md", ".proto", ".yaml", ".yml", ".txt", ".mod", "Makefile", "Dockerfile", ".sh", ".ci/run"}

// Load reads the tree. Directories that git ignores or that begin with a dot are left
// out, except .ci.
func Load(root fs.FS) (*Tree, error) {
	t := &Tree{Texts: make(map[string][]byte)}
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != "." && skipDir(d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !isText(p) {
			return nil
		}
		t.Texts[p], err = fs.ReadFile(root, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	for p := range t.Texts {
		if path.Base(p) == "go.mod" && p != "go.mod" {
			t.OtherModules = append(t.OtherModules, path.Dir(p))
		}
	}
	slices.Sort(t.OtherModules)
	return t, t.parse()
}

func skipDir(name string) bool {
	return name == "bin" || name == "build" || name != ".ci" && (name[0] == '.' || name[0] == '_')
}

func isText(p string) bool {
	return slices.ContainsFunc(textEndings, func(end string) bool { return strings.HasSuffix(p, end) })
}

// paths are the paths of Texts in order.
func (t *Tree) paths() []string {
	list := make([]string, 0, len(t.Texts))
	for p := range t.Texts {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

// parse fills Go from Texts.
func (t *Tree) parse() error {
	fset := token.NewFileSet()
	for _, p := range t.paths() {
		if !strings.HasSuffix(p, ".go") || t.foreign(p) || strings.Contains("/"+p, "/testdata/") {
			continue
		}
		file, err := parser.ParseFile(fset, p, t.Texts[p], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(p)
		if dir == "." {
			dir = ""
		}
		t.Go = append(t.Go, &GoFile{
			Path: p, Package: dir, Test: strings.HasSuffix(p, "_test.go"),
			Generated: ast.IsGenerated(file), AST: file, fset: fset,
		})
	}
	return nil
}

// foreign says whether a path lies in another module.
func (t *Tree) foreign(p string) bool {
	return slices.ContainsFunc(t.OtherModules, func(dir string) bool { return strings.HasPrefix(p, dir+"/") })
}

// packages returns the directories of the main module's packages in order.
func (t *Tree) packages() []string {
	var list []string
	for _, f := range t.Go {
		if !slices.Contains(list, f.Package) {
			list = append(list, f.Package)
		}
	}
	slices.Sort(list)
	return list
}

// own returns the package of an import of ours.
func own(imported string) (pkg string, ok bool) {
	if imported == modulePath {
		return "", true
	}
	return strings.CutPrefix(imported, modulePath+"/")
}

// display names a package in a complaint.
func display(pkg string) string {
	if pkg == "" {
		return "weir"
	}
	return pkg
}

// within says whether pkg is dir or lies below it.
func within(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }
