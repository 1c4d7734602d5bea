-- spoke: own transaction
-- Without the locks of the file before it: it reads the tables beside readers and writers.
alter table agent_usage validate constraint agent_usage_tenant_id_fkey;
alter table model_usage validate constraint model_usage_tenant_id_fkey;
alter table other_model_usage validate constraint other_model_usage_tenant_id_fkey;
