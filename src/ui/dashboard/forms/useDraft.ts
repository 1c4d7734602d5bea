/** A form over something stored: what is typed is kept until it is saved, and what others store meanwhile is not lost. */
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
  /** True where something was typed that is not stored. */
  readonly isDirty: boolean
  /** True where that was typed on an earlier visit. */
  readonly isRestored: boolean
  /** Values that another session has stored meanwhile in fields that were changed here too. */
  readonly theirs: Partial<A>
  /** Gives a field the value that another session has stored. */
  readonly take: (name: keyof A) => void
  /** Back to what is stored. */
  readonly discard: () => void
  /** To be called when the values have been stored. */
  readonly saved: () => void
}

interface Options<A extends Fields> {
  /** Names the form and what it edits. */
  readonly name: string
  /** Its name in the list of drafts that were not saved. */
  readonly title: string
  /** The stored values, as the form shows them. */
  readonly stored: A
  /** Secrets: they are not kept. */
  readonly unkept?: ReadonlyArray<keyof A & string>
}

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null

/** `kept` where it has the form of `like`. */
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
  const begun = (): Edited<A> & { readonly isRestored: boolean } => {
    const kept = findDraft(userId, name)
    const mine = formedLike(kept?.value, stored)
    const base = formedLike(kept?.base, stored)
    return mine === null || base === null
      ? { base: stored, mine: stored, theirs: {}, isRestored: false }
      : { base, mine, theirs: {}, isRestored: true }
  }
  const [state, setState] = useState(begun)
  // What is stored has changed since: a form follows it where nothing was typed.
  const current = isSame(state.base, stored) ? state : { ...state, ...rebased(state, stored) }
  if (current !== state) setState(current)
  const isDirty = isChanged(current)

  const secrets = Object.fromEntries(unkept.map((secret) => [secret, current.base[secret]]))
  const value = { ...current.mine, ...secrets }
  const draft = JSON.stringify(isSame(value, current.base) ? null : { base: current.base, value })
  const isFirst = useRef(true)
  useEffect(() => {
    const kept: { readonly base: A; readonly value: A } | null = JSON.parse(draft)
    if (kept !== null) keepDraft(userId, { key: name, title, path, ...kept, at: Date.now() })
    // A form that was opened anew and not touched has nothing to forget.
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
      setState({ base: stored, mine: stored, theirs: {}, isRestored: false })
    },
    saved: () => {
      dropDraft(userId, name)
      setState(({ mine }) => ({ base: mine, mine, theirs: {}, isRestored: false }))
    }
  }
}
