// Command taskmanager is weir in the role of a TaskManager, for those who want a binary of
// that name without a link. It takes the flags of weir taskmanager.
package main
