/**
 * Drafts of unsaved input. They are stored in this browser for the user who typed them, so that they survive the page
 * and the session. They never contain secrets.
 */
import { useSyncExternalStore } from "react"
import { makeListeners } from "../listeners.ts"
import { readStored, removeStored, store, storedKeys } from "../window/localStorage.ts"

export interface KeptDraft {
  /** Identifies the form and its resource. */
  readonly key: string
  /** Its name in the list of drafts. */
  readonly title: string
  /** The path of the page on which it was typed. */
  readonly path: string
  /** The stored values when editing began. */
  readonly base: unknown
  readonly value: unknown
  /** Milliseconds since the epoch. */
  readonly at: number
}

const maxDraftAgeMs = 30 * 86_400_000

const prefixOf = (userId: string) => `spoke.draft.${userId}.`

const { listen, notify } = makeListeners()
let listsByUser = new Map<string, ReadonlyArray<KeptDraft>>()

const onChange = () => {
  listsByUser = new Map()
  notify()
}

const parseDraft = (text: string | null): KeptDraft | null => {
  try {
    const draft: KeptDraft | null = JSON.parse(text ?? "null")
    return draft
  } catch {
    return null
  }
}

export const findDraft = (userId: string, key: string): KeptDraft | null =>
  parseDraft(readStored(prefixOf(userId) + key))

export const keepDraft = (userId: string, draft: KeptDraft): void => {
  store(prefixOf(userId) + draft.key, JSON.stringify(draft))
  onChange()
}

export const dropDraft = (userId: string, key: string): void => {
  if (readStored(prefixOf(userId) + key) === null) return
  removeStored(prefixOf(userId) + key)
  onChange()
}

const listOf = (userId: string): ReadonlyArray<KeptDraft> => {
  const known = listsByUser.get(userId)
  if (known !== undefined) return known
  const drafts = storedKeys()
    .filter((name) => name.startsWith(prefixOf(userId)))
    .flatMap((name) => parseDraft(readStored(name)) ?? [])
  const fresh = drafts.filter(({ at }) => Date.now() - at < maxDraftAgeMs)
  for (const { key } of drafts) {
    if (!fresh.some((draft) => draft.key === key)) removeStored(prefixOf(userId) + key)
  }
  const sorted = fresh.toSorted((one, other) => one.at - other.at)
  listsByUser.set(userId, sorted)
  return sorted
}

export const dropDrafts = (userId: string): void => {
  for (const { key } of listOf(userId)) removeStored(prefixOf(userId) + key)
  onChange()
}

/** Calls `listener` when this tab or another one changes the drafts. */
const listenInAllTabs = (listener: () => void) => {
  const stop = listen(listener)
  // Each component needs its own function, because the browser registers the same function once.
  const onStorage = () => onChange()
  window.addEventListener("storage", onStorage)
  return () => {
    stop()
    window.removeEventListener("storage", onStorage)
  }
}

/** The user's drafts, oldest first. */
export const useKeptDrafts = (userId: string): ReadonlyArray<KeptDraft> =>
  useSyncExternalStore(listenInAllTabs, () => listOf(userId))
