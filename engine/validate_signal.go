package engine

// Validate refuses a signal that breaks a limit, naming the request's field.
func (p *SignalRunParams) Validate() error {
	return firstError([]error{
		CheckName("name", p.Name),
		CheckOptionalName("signal_id", p.SignalID),
		CheckPayload("payload", p.Payload),
	})
}
