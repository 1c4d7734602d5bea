/** A team's labels, saved views and canned replies. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import {
  CannedReply,
  type CannedReplyFields,
  type CannedReplyId,
  Label,
  type LabelFields,
  type LabelId,
  maxInboxItems,
  newCannedReplyId,
  newLabelId,
  newSavedViewId,
  SavedView,
  SavedViewFields,
  type SavedViewId
} from "../../domain/conversations/Inbox.ts"
import { Conflict, NotFound } from "../../domain/Errors.ts"
import { InboxItemStore, type Item, type ItemKind } from "../../store/conversations/InboxItems.ts"

const missing = () => new NotFound({ message: "There is nothing of that kind with this id." })
const nameTaken = () => new Conflict({ message: "Another one has this name." })
const tooManyItems = () => new Conflict({ message: `There are ${maxInboxItems} already.` })

const decodeLabel = Schema.decodeUnknownSync(Label)
const decodeView = Schema.decodeUnknownSync(SavedView)
const decodeReply = Schema.decodeUnknownSync(CannedReply)
const encodeFilter = Schema.encodeSync(SavedViewFields.fields.filter)

const toneOf = (content: unknown) => ({ tone: "neutral", ...Object(content) })

export class InboxItems extends Effect.Service<InboxItems>()("usecases/conversations/InboxItems", {
  effect: Effect.gen(function* () {
    const store = yield* InboxItemStore

    /** All items, sorted by name. */
    const all = Effect.fn("InboxItems.all")(function* (scope: TenantScope) {
      const items = yield* store.list(scope)
      const of = (kind: ItemKind) => items.filter((item) => item.kind === kind)
      return {
        labels: of("label").map(({ content, id, name }) => decodeLabel({ id, name, ...toneOf(content) })),
        views: of("view").map(({ content, id, name }) => decodeView({ id, name, filter: content })),
        replies: of("reply").map(({ content, id, name }) => decodeReply({ id, shortcut: name, content }))
      }
    })

    const add = Effect.fn("InboxItems.add")(function* (scope: TenantScope, item: Item) {
      const outcome = yield* store.insert(scope, item)
      if (outcome === "full") return yield* tooManyItems()
      if (outcome === "taken") return yield* nameTaken()
    })

    const remove = Effect.fn("InboxItems.remove")(function* (scope: TenantScope, kind: ItemKind, id: string) {
      if (!(yield* store.remove(scope, kind, id))) return yield* missing()
    })

    const addLabel = Effect.fn("InboxItems.addLabel")(function* (
      scope: TenantScope,
      { name, tone }: typeof LabelFields.Type
    ) {
      const id = yield* newLabelId
      yield* add(scope, { id, kind: "label", name, content: { tone } })
      return { id, name, tone }
    })

    const addView = Effect.fn("InboxItems.addView")(function* (
      scope: TenantScope,
      { filter, name }: typeof SavedViewFields.Type
    ) {
      const id = yield* newSavedViewId
      yield* add(scope, { id, kind: "view", name, content: encodeFilter(filter) })
      return { id, name, filter }
    })

    const addReply = Effect.fn("InboxItems.addReply")(function* (
      scope: TenantScope,
      { content, shortcut }: typeof CannedReplyFields.Type
    ) {
      const id = yield* newCannedReplyId
      yield* add(scope, { id, kind: "reply", name: shortcut, content })
      return { id, shortcut, content }
    })

    const updateReply = Effect.fn("InboxItems.updateReply")(function* (
      scope: TenantScope,
      id: CannedReplyId,
      { content, shortcut }: typeof CannedReplyFields.Type
    ) {
      const outcome = yield* store.update(scope, { id, kind: "reply", name: shortcut, content })
      if (outcome === "taken") return yield* nameTaken()
      if (outcome === "missing") return yield* missing()
      return { id, shortcut, content }
    })

    /** Removes the label from all conversations. Entries in their threads stay. */
    const removeLabel = (scope: TenantScope, id: LabelId) => remove(scope, "label", id)
    const removeView = (scope: TenantScope, id: SavedViewId) => remove(scope, "view", id)
    const removeReply = (scope: TenantScope, id: CannedReplyId) => remove(scope, "reply", id)

    return { all, addLabel, addView, addReply, updateReply, removeLabel, removeView, removeReply } as const
  })
}) {}
