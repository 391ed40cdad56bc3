// Command jobmanager is weir in the role of a JobManager, for those who want a binary of
// that name without a link. It takes the flags of weir jobmanager.
package main
