-- One snapshot for all statements of a method.
begin
