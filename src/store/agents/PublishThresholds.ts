/** Results that versions of an agent need before they can be published. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { PublishThreshold } from "../../domain/agents/Experiment.ts"
import * as Rows from "../Rows.ts"

const noThreshold: PublishThreshold = { minPass: null, noRegression: false }

export class PublishThresholdStore extends Effect.Service<PublishThresholdStore>()(
  "store/agents/PublishThresholds",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const columns = sql`min_pass as "minPass", no_regression as "noRegression"`

      const find = ({ agentId, tenantId }: AgentScope) =>
        sql`
          select ${columns} from publish_thresholds where tenant_id = ${tenantId} and agent_id = ${agentId}`.pipe(
          Rows.first(PublishThreshold),
          Effect.map(Option.getOrElse(() => noThreshold)),
          Effect.withSpan("PublishThresholdStore.find")
        )

      /** None when the tenant has no such agent. */
      const set = ({ agentId, tenantId }: AgentScope, { minPass, noRegression }: PublishThreshold) =>
        sql`
          insert into publish_thresholds (tenant_id, agent_id, min_pass, no_regression)
          select tenant_id, id, ${minPass}::float8, ${noRegression}::boolean from agents
          where tenant_id = ${tenantId} and id = ${agentId} for key share
          on conflict (tenant_id, agent_id) do update
            set min_pass = excluded.min_pass, no_regression = excluded.no_regression
          returning ${columns}`.pipe(
          Rows.first(PublishThreshold),
          Effect.withSpan("PublishThresholdStore.set")
        )

      return { find, set } as const
    })
  }
) {}
