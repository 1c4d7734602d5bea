-- A refund names no tenant. It gets that of its payment, so that it is moved and exported with the tenant.
update billing_events e set tenant_id = paid.tenant_id
from (
  select object_id, min(tenant_id) as tenant_id from billing_events group by object_id having count(distinct tenant_id) = 1
) paid
where e.object_id = paid.object_id and e.tenant_id is null and e.fact ->> '_tag' = 'Refund';
