/** Notes about unsaved changes, restored drafts, and conflicting changes of another session. */
import { useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { Link, useLocation } from "wouter"
import { isOutdated } from "../api/Client.ts"
import { session } from "../api/Session.ts"
import { Button } from "../components/Button.tsx"
import { texts, useText } from "../text/Language.tsx"
import css from "./Form.module.css"
import { dropDraft, useKeptDrafts } from "./keptDrafts.ts"
import type { Fields } from "./merge.ts"
import type { Draft } from "./useDraft.ts"

const words = texts(
  {
    unsaved: "Not saved yet.",
    restored: "What you had typed before is here again, not saved yet.",
    discard: "Discard",
    discardOf: (title: string) => `Discard: ${title}`,
    conflict: "Changed by somebody else in the meantime",
    conflictHelp:
      "What you typed is still here, and nothing has been overwritten. Compare the fields below, then save again.",
    mergedHelp:
      "Those changes are here now, and what you typed is kept. Look through the fields, then save again.",
    theirs: "Saved in the meantime:",
    empty: "(empty)",
    take: "Use this instead",
    kept: "Not saved:"
  },
  {
    unsaved: "Noch nicht gespeichert.",
    restored: "Was Sie zuvor getippt hatten, ist wieder da, noch nicht gespeichert.",
    discard: "Verwerfen",
    discardOf: (title: string) => `Verwerfen: ${title}`,
    conflict: "Inzwischen von jemand anderem geändert",
    conflictHelp:
      "Was Sie getippt haben, ist noch da, und nichts wurde überschrieben. Bitte die Felder unten vergleichen und dann noch einmal speichern.",
    mergedHelp:
      "Diese Änderungen stehen jetzt hier, und was Sie getippt haben, ist noch da. Bitte die Felder durchsehen und dann noch einmal speichern.",
    theirs: "Inzwischen gespeichert:",
    empty: "(leer)",
    take: "Stattdessen verwenden",
    kept: "Nicht gespeichert:"
  }
)

interface DraftStateProps<A extends Fields> {
  readonly draft: Draft<A>
  /** Shown while there is nothing to save. */
  readonly children?: ReactNode
}

/** The state of the draft, shown beside the save button. */
export const DraftState = <A extends Fields>({ draft, children }: DraftStateProps<A>) => {
  const t = useText(words)
  return (
    <span className={css["notes"]}>
      <span role="status">
        {draft.isDirty ? (draft.isRestored ? t.restored : t.unsaved) : (children ?? "")}
      </span>
      {draft.isDirty ? (
        <Button kind="quiet" onClick={draft.discard}>
          {t.discard}
        </Button>
      ) : null}
    </span>
  )
}

/** A notice above the fields if another session has changed the resource meanwhile. */
export const ConflictNotice = <A extends Fields>({
  draft,
  problem
}: {
  readonly draft: Draft<A>
  /** Why saving failed. */
  readonly problem: unknown
}) => {
  const t = useText(words)
  const hasConflicts = Object.keys(draft.theirs).length > 0
  return hasConflicts || (isOutdated(problem) && draft.isDirty) ? (
    <div role="alert" className={css["conflict"]}>
      <strong>{t.conflict}</strong>
      <span>{hasConflicts ? t.conflictHelp : t.mergedHelp}</span>
    </div>
  ) : null
}

/** The conflicting stored value of a field, shown below it with a button to use it. */
export const ConflictingValue = <A extends Fields>({
  draft,
  name,
  format = String
}: {
  readonly draft: Draft<A>
  readonly name: keyof A & string
  /** Formats a value of the field. */
  readonly format?: (value: unknown) => string
}) => {
  const t = useText(words)
  if (!(name in draft.theirs)) return null
  const text = format(draft.theirs[name])
  return (
    <div className={css["theirs"]}>
      <span>{t.theirs}</span>
      <pre tabIndex={0}>{text === "" ? t.empty : text}</pre>
      <Button onClick={() => draft.takeTheirs(name)}>{t.take}</Button>
    </div>
  )
}

/** Links to unsaved drafts on other pages. */
export const KeptDrafts = () => {
  const t = useText(words)
  const { data: user } = useQuery(session)
  const [location] = useLocation()
  const userId = user?.id ?? ""
  const otherDrafts = useKeptDrafts(userId).filter(({ path }) => path !== location)
  return otherDrafts.length === 0 ? null : (
    <ul className={css["kept"]} aria-label={t.kept}>
      <li aria-hidden>{t.kept}</li>
      {otherDrafts.map(({ key, path, title }) => (
        <li key={key}>
          <Link href={path}>{title}</Link>{" "}
          <Button kind="quiet" aria-label={t.discardOf(title)} onClick={() => dropDraft(userId, key)}>
            ×
          </Button>
        </li>
      ))}
    </ul>
  )
}
