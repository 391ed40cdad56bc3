package tidy_test

import (
	"os"
	"slices"
	"testing"

	"github.com/weirflow/weir/internal/tidy"
)

// root is the repository's, seen from this directory.
const root = "../.."

func TestRepository(t *testing.T) {
	t.Parallel()
	tree, err := tidy.Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Go) < 20 {
		t.Fatalf("only %d Go files: this is not the repository", len(tree.Go))
	}
	for _, rule := range append(tidy.Rules, tidy.Rule{Name: "ratchet", Check: tidy.Ratchet}) {
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			complaints := rule.Check(tree)
			slices.Sort(complaints)
			for _, c := range slices.Compact(complaints) {
				t.Error(c)
			}
		})
	}
}
