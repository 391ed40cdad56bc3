package daemon

import (
	"io"

	"github.com/weirflow/weir/operator"
)

// process is what all roles of this process have in common.
type process struct {
	catalog operator.Catalog
	codeID  string
	logs    io.Writer
}
