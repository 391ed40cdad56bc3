// Command weir is everything: the daemons, the client commands, and the jobs that
// are shipped with it. weir --help says how to begin.
package main
