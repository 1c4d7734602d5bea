/** The accounts at messaging providers that an agent answers for, as the dashboard sets them up. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type {
  ChannelConfiguration,
  CreateChannel,
  PatchChannel
} from "../../domain/channels/ChannelConfiguration.ts"
import { Conflict, NotFound, ValidationError } from "../../domain/Errors.ts"
import { type AgentId, type ChannelId, newId } from "../../domain/Ids.ts"
import { outdated } from "../../domain/Version.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import { ChannelStore, type StoredChannel } from "../../store/channels/Channels.ts"
import type { PageRequest } from "../../store/accounts/Tenants.ts"

const missing = () => new NotFound({ message: "There is no such channel." })
const missingAgent = () => new NotFound({ message: "There is no such agent." })
const taken = () => new Conflict({ message: "The account has an active configuration already." })
const fixed = () =>
  new ValidationError({
    message: "A channel stays with its provider.",
    details: { issues: [{ path: ["channel"], message: "Make another channel for another provider" }] }
  })

const shown = ({ tenantId: _, accessToken: __, ...row }: StoredChannel): ChannelConfiguration => row

export class Channels extends Effect.Service<Channels>()("usecases/channels/Channels", {
  effect: Effect.gen(function* () {
    const store = yield* ChannelStore
    const agents = yield* AgentStore
    const box = yield* SecretBox

    const sealed = (token: Redacted.Redacted) => box.seal("channel-token", Redacted.value(token))

    const known = Effect.fn("Channels.known")(function* (scope: TenantScope, agentId: AgentId) {
      if (Option.isNone(yield* agents.find(scope, agentId))) return yield* missingAgent()
      return { tenantId: scope.tenantId, agentId }
    })

    /** The agent's, oldest first. */
    const list = Effect.fn("Channels.list")(function* (
      scope: TenantScope,
      agentId: AgentId,
      request: PageRequest
    ) {
      const { next, rows } = yield* store.page(yield* known(scope, agentId), request)
      return { rows: rows.map(shown), next }
    })

    const create = Effect.fn("Channels.create")(function* (
      scope: TenantScope,
      agentId: AgentId,
      { accessToken, ...given }: CreateChannel
    ) {
      const agent = yield* known(scope, agentId)
      const row = { ...given, id: yield* newId.channel, accessToken: yield* sealed(accessToken) }
      const made = yield* store.insert(agent, row)
      if (Option.isNone(made)) return yield* taken()
      return shown(made.value)
    })

    /** CONFLICT, too, when `expected`, the version that the change was made from, is no longer the newest. */
    const patch = Effect.fn("Channels.patch")(function* (
      scope: TenantScope,
      id: ChannelId,
      { accessToken, channel, ...changes }: PatchChannel,
      expected: number | null = null
    ) {
      const found = yield* store.own(scope, id)
      if (Option.isNone(found)) return yield* missing()
      if (channel !== undefined && channel !== found.value.channel) return yield* fixed()
      const sent = {
        ...changes,
        ...(accessToken === undefined ? {} : { accessToken: yield* sealed(accessToken) })
      }
      const updated = yield* store.update(scope, id, sent, expected)
      if (Option.isNone(updated)) {
        const newest = yield* store.own(scope, id)
        const isOld = expected !== null && Option.isSome(newest) && newest.value.version !== expected
        return yield* isOld ? outdated(newest.value.version) : taken()
      }
      return shown(updated.value)
    })

    const remove = Effect.fn("Channels.remove")(function* (scope: TenantScope, id: ChannelId) {
      if (!(yield* store.remove(scope, id))) return yield* missing()
    })

    return { list, create, patch, remove } as const
  })
}) {}
