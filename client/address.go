package client

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/weirflow/weir/rpc"
)

// ParseAddresses checks the addresses of JobManagers, as --jobmanager has them: host:port
// with a number for the port. Empty ones are left out; none at all is an error. Whether a
// host exists is not asked: it may come later.
func ParseAddresses(addresses []string) ([]string, error) {
	var list []string
	for _, a := range addresses {
		if a = strings.TrimSpace(a); a == "" {
			continue
		}
		if fault := addressFault(a); fault != "" {
			return nil, &rpc.Error{
				Code: rpc.CodeInvalidArgument, Message: fmt.Sprintf("--jobmanager: %q is no address: %s", a, fault),
				Hint: "want host:port, for example 127.0.0.1:6123; several are separated by commas",
			}
		}
		list = append(list, a)
	}
	if len(list) == 0 {
		return nil, &rpc.Error{Code: rpc.CodeInvalidArgument, Message: "no JobManager address given", Hint: "for example 127.0.0.1:6123"}
	}
	return list, nil
}

// addressFault says what is wrong with an address; empty: nothing.
func addressFault(a string) string {
	host, port, err := net.SplitHostPort(a)
	switch n, perr := strconv.ParseUint(port, 10, 16); {
	case err != nil && strings.Contains(err.Error(), "missing port"):
		return "it has no port"
	case err != nil:
		return "it is not host:port"
	case host == "" || strings.ContainsAny(host, "/ @?#"):
		return "it has no host"
	case perr != nil || n == 0:
		return fmt.Sprintf("the port %q is not a number from 1 to 65535", port)
	}
	return ""
}
