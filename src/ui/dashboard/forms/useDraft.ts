/** The state of a form for a stored resource. Input is kept until it is saved, and merged with concurrent changes. */
import { useQuery } from "@tanstack/react-query"
import { useEffect, useRef, useState } from "react"
import { useLocation } from "wouter"
import { session } from "../api/Session.ts"
import { dropDraft, findDraft, keepDraft } from "./keptDrafts.ts"
import { useLeaveWarning } from "./useLeaveWarning.ts"
import { type Edited, type Fields, isChanged, isSame, rebase } from "./merge.ts"

export interface Draft<A extends Fields> {
  readonly value: A
  readonly change: (fields: Partial<A>) => void
  /** True if there is unsaved input. */
  readonly isDirty: boolean
  /** True if the input is from an earlier visit. */
  readonly isRestored: boolean
  /** The stored values of fields that another session has changed, too. */
  readonly theirs: Partial<A>
  /** Replaces the value of a field by the stored one of the other session. */
  readonly takeTheirs: (name: keyof A) => void
  /** Resets the form to the stored values. */
  readonly discard: () => void
  /**
   * To be called after the values were stored. `sent` are the values of the request: input that was typed since is
   * kept. Without `sent`, the form shows the stored values again.
   */
  readonly saved: (sent?: A) => void
}

interface Options<A extends Fields> {
  /** Identifies the form and its resource. */
  readonly name: string
  /** Its name in the list of unsaved drafts. */
  readonly title: string
  /** The stored values, as the form shows them. */
  readonly stored: A
  /** Fields that are not kept in the draft, because they are secret. */
  readonly secretFields?: ReadonlyArray<keyof A & string>
}

interface State<A extends Fields> extends Edited<A> {
  /** The stored values that were merged last. */
  readonly seen: A
  readonly isRestored: boolean
}

const unedited = <A extends Fields>(stored: A): State<A> => ({
  base: stored,
  mine: stored,
  theirs: {},
  seen: stored,
  isRestored: false
})

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null

/** `kept` as an `A`, if its fields have the same types as those of `shape`; else null. */
const withShapeOf = <A extends Fields>(kept: unknown, shape: A): A | null => {
  if (!isFields(kept)) return null
  const result = { ...shape }
  for (const name of Object.keys(shape)) {
    const value = kept[name]
    if (typeof value !== typeof shape[name]) return null
    Object.assign(result, { [name]: value })
  }
  return result
}

export const useDraft = <A extends Fields>({
  name,
  stored,
  title,
  secretFields = []
}: Options<A>): Draft<A> => {
  const { data: user } = useQuery(session)
  const [path] = useLocation()
  const userId = user?.id ?? ""
  const initialState = (): State<A> => {
    const kept = findDraft(userId, name)
    const mine = withShapeOf(kept?.value, stored)
    const base = withShapeOf(kept?.base, stored)
    return mine === null || base === null
      ? unedited(stored)
      : { base, mine, theirs: {}, seen: base, isRestored: true }
  }
  const [state, setState] = useState(initialState)
  // Merges the stored values if they have changed. An unedited form shows them.
  const current = isSame(state.seen, stored) ? state : { ...state, ...rebase(state, stored), seen: stored }
  if (current !== state) setState(current)
  const isDirty = isChanged(current)

  const secrets = Object.fromEntries(secretFields.map((secret) => [secret, current.base[secret]]))
  const value = { ...current.mine, ...secrets }
  const draft = JSON.stringify(isSame(value, current.base) ? null : { base: current.base, value })
  const isFirst = useRef(true)
  useEffect(() => {
    const kept: { readonly base: A; readonly value: A } | null = JSON.parse(draft)
    if (kept !== null) keepDraft(userId, { key: name, title, path, ...kept, at: Date.now() })
    // A form that was just opened has no draft to delete.
    else if (!isFirst.current) dropDraft(userId, name)
    isFirst.current = false
  }, [userId, name, title, path, draft])

  useLeaveWarning(isDirty)

  return {
    value: current.mine,
    isDirty,
    isRestored: current.isRestored && isDirty,
    theirs: current.theirs,
    change: (fields) => setState((previous) => ({ ...previous, mine: { ...previous.mine, ...fields } })),
    takeTheirs: (field) =>
      setState((previous) => {
        if (!(field in previous.theirs)) return previous
        const theirs = { ...previous.theirs }
        delete theirs[field]
        return { ...previous, mine: { ...previous.mine, [field]: previous.theirs[field] }, theirs }
      }),
    discard: () => {
      dropDraft(userId, name)
      setState(unedited(stored))
    },
    saved: (sent) => {
      // The component may be unmounted before the effect above runs.
      if (sent === undefined || isSame(sent, current.mine)) dropDraft(userId, name)
      setState(({ mine, seen }) => ({
        base: sent ?? mine,
        mine,
        theirs: {},
        seen: sent === undefined ? mine : seen,
        isRestored: false
      }))
    }
  }
}
