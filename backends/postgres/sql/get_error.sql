-- To tell a repetition from another failure. No row: the run did not fail under this token.
select error from runs where run_id = @run_id and final_token = @token and status = 5
