-- Output and error of a workflow row `w`, where its status says that it has one; its own table wins.
CASE WHEN w.status = 'SUCCESS' THEN coalesce(
-- if split
    (SELECT o.output FROM {s}.workflow_output o WHERE o.workflow_uuid = w.workflow_uuid),
-- end
-- if inline
    w.output,
-- end
    NULL) END AS output,
CASE WHEN w.status IN ('ERROR', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED') THEN coalesce(
-- if split
    (SELECT o.error FROM {s}.workflow_output o WHERE o.workflow_uuid = w.workflow_uuid),
-- end
-- if inline
    w.error,
-- end
    NULL) END AS error
