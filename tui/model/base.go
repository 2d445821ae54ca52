package model

// base is what all models on a link have in common: a model that is hidden keeps what it has and
// asks the server nothing.
type base struct {
	// Changed is called on the UI goroutine after something is different. Set it before Show; nil is fine.
	Changed func()

	link  *Link
	tasks *tasks
	leave func() // of the link's subscribers
	shown bool
	err   error // of the latest reading
}

// join makes the base of a model; heard is called with what the link tells, shown or not.
func join(l *Link, heard func(Change)) base {
	return base{link: l, tasks: newTasks(l.tasks.ctx, l.tasks.post, l.tasks.now), leave: l.Subscribe(heard)}
}

// Close ends the model and waits for what it has under way.
func (b *base) Close() {
	b.leave()
	b.shown = false
	b.tasks.close()
}

func (b *base) change() {
	if b.Changed != nil {
		b.Changed()
	}
}

// failure is why there is nothing to show: of the model's own reading, or of the connection.
func (b *base) failure(loaded bool) error {
	switch {
	case loaded:
		return nil
	case b.err != nil:
		return b.err
	case b.link.State().Down():
		return b.link.State().Err
	}
	return nil
}
