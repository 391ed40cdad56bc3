package gate

// Expect sets the sequence number that comes next.
func (c *RemoteChannel) Expect(sequence uint32) { c.next = sequence }
