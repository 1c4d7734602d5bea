/** A form for a stored resource: input is kept until it is saved, and concurrent changes of others are not lost. */
import { useQuery } from "@tanstack/react-query"
import { useEffect, useRef, useState } from "react"
import { useLocation } from "wouter"
import { session } from "../api/Session.ts"
import { dropDraft, findDraft, keepDraft } from "./keptDrafts.ts"
import { useLeaveWarning } from "./useLeaveWarning.ts"
import { type Edited, type Fields, isChanged, isSame, rebased } from "./merge.ts"

export interface Draft<A extends Fields> {
  readonly value: A
  readonly change: (fields: Partial<A>) => void
  /** True with unsaved input. */
  readonly isDirty: boolean
  /** True if the input is from an earlier visit. */
  readonly isRestored: boolean
  /** Values that another session has stored meanwhile in fields that were changed here too. */
  readonly theirs: Partial<A>
  /** Gives a field the value that another session has stored. */
  readonly take: (name: keyof A) => void
  /** Resets the form to the stored values. */
  readonly discard: () => void
  /**
   * To be called after the values were stored. `sent` are those of the request: what was typed while it ran is kept.
   * Without them, the form goes back to its stored values.
   */
  readonly saved: (sent?: A) => void
}

interface Options<A extends Fields> {
  /** Identifies the form and its resource. */
  readonly name: string
  /** Its name in the list of drafts that were not saved. */
  readonly title: string
  /** The stored values, as the form shows them. */
  readonly stored: A
  /** Secrets: they are not kept. */
  readonly unkept?: ReadonlyArray<keyof A & string>
}

interface State<A extends Fields> extends Edited<A> {
  /** The stored values that were taken into account last. */
  readonly seen: A
  readonly isRestored: boolean
}

const clean = <A extends Fields>(stored: A): State<A> => ({
  base: stored,
  mine: stored,
  theirs: {},
  seen: stored,
  isRestored: false
})

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null

/** `kept`, if it has the same shape as `like`. */
const formedLike = <A extends Fields>(kept: unknown, like: A): A | null => {
  if (!isFields(kept)) return null
  const formed = { ...like }
  for (const name of Object.keys(like)) {
    const value = kept[name]
    if (typeof value !== typeof like[name]) return null
    Object.assign(formed, { [name]: value })
  }
  return formed
}

export const useDraft = <A extends Fields>({ name, stored, title, unkept = [] }: Options<A>): Draft<A> => {
  const { data: user } = useQuery(session)
  const [path] = useLocation()
  const userId = user?.id ?? ""
  const begun = (): State<A> => {
    const kept = findDraft(userId, name)
    const mine = formedLike(kept?.value, stored)
    const base = formedLike(kept?.base, stored)
    return mine === null || base === null
      ? clean(stored)
      : { base, mine, theirs: {}, seen: base, isRestored: true }
  }
  const [state, setState] = useState(begun)
  // The stored values have changed: an unedited form follows them.
  const current = isSame(state.seen, stored) ? state : { ...state, ...rebased(state, stored), seen: stored }
  if (current !== state) setState(current)
  const isDirty = isChanged(current)

  const secrets = Object.fromEntries(unkept.map((secret) => [secret, current.base[secret]]))
  const value = { ...current.mine, ...secrets }
  const draft = JSON.stringify(isSame(value, current.base) ? null : { base: current.base, value })
  const isFirst = useRef(true)
  useEffect(() => {
    const kept: { readonly base: A; readonly value: A } | null = JSON.parse(draft)
    if (kept !== null) keepDraft(userId, { key: name, title, path, ...kept, at: Date.now() })
    // An unedited form has no draft to delete.
    else if (!isFirst.current) dropDraft(userId, name)
    isFirst.current = false
  }, [userId, name, title, path, draft])

  useLeaveWarning(isDirty)

  return {
    value: current.mine,
    isDirty,
    isRestored: current.isRestored && isDirty,
    theirs: current.theirs,
    change: (fields) => setState((before) => ({ ...before, mine: { ...before.mine, ...fields } })),
    take: (field) =>
      setState((before) => {
        if (!(field in before.theirs)) return before
        const theirs = { ...before.theirs }
        delete theirs[field]
        return { ...before, mine: { ...before.mine, [field]: before.theirs[field] }, theirs }
      }),
    discard: () => {
      dropDraft(userId, name)
      setState(clean(stored))
    },
    saved: (sent) => {
      // The component may be gone before the effect above runs.
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
