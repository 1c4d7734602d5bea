/** Fields of a text source, or of questions with answers. */
import type { ReactNode } from "react"
import type { SourceConfig } from "../../api/Sources.ts"
import { Button } from "../../components/Button.tsx"
import { LongText, TextField } from "../../components/Field.tsx"
import { texts, useText } from "../../text/Language.tsx"
import css from "./CuratedFields.module.css"

const words = texts(
  {
    text: "Text",
    textHelp: "Plain text or Markdown.",
    pair: (number: number) => `Question ${number}`,
    question: "Question",
    answer: "Answer",
    add: "Add a question",
    remove: "Remove",
    removeOf: (number: number) => `Remove question ${number}`,
    pairsHelp: "Whoever asks the same, or nearly the same, gets this answer first."
  },
  {
    text: "Text",
    textHelp: "Reiner Text oder Markdown.",
    pair: (number: number) => `Frage ${number}`,
    question: "Frage",
    answer: "Antwort",
    add: "Frage hinzufügen",
    remove: "Entfernen",
    removeOf: (number: number) => `Frage ${number} entfernen`,
    pairsHelp: "Wer dasselbe oder fast dasselbe fragt, bekommt zuerst diese Antwort."
  }
)

/** Values of the fields, as typed. */
export interface CuratedForm {
  readonly [field: string]: unknown
  readonly text: string
  readonly pairs: NonNullable<SourceConfig["pairs"]>
}

const emptyPair = { question: "", answer: "" }
export const emptyCurated: CuratedForm = { text: "", pairs: [emptyPair] }

export const curatedFormOf = ({ pairs = emptyCurated.pairs, text = "" }: SourceConfig): CuratedForm => ({
  text,
  pairs
})

type CuratedType = "TEXT" | "QA"

export const isCurated = (type: string): type is CuratedType => type === "TEXT" || type === "QA"

/** The source's config from the form. */
export const curatedOf = (type: CuratedType, { pairs, text }: CuratedForm) =>
  type === "TEXT" ? ({ type, config: { text } } as const) : ({ type, config: { pairs } } as const)

/** Paths of validation issues. */
export const curatedPlaces = ["config.text", "config.pairs"] as const

interface Props {
  readonly type: CuratedType
  readonly form: CuratedForm
  readonly onChange: (form: Partial<CuratedForm>) => void
  readonly errorOf: (place: (typeof curatedPlaces)[number]) => string | undefined
  /** The error below a field, by the field's path. */
  readonly below?: (field: "text" | "pairs") => ReactNode
}

const Pairs = ({ errorOf, form: { pairs }, onChange }: Props) => {
  const t = useText(words)
  const changed = (place: number, fields: Partial<(typeof pairs)[number]>) =>
    onChange({ pairs: pairs.map((pair, at) => (at === place ? { ...pair, ...fields } : pair)) })
  const error = errorOf("config.pairs")
  return (
    <>
      <p className={css["help"]}>{t.pairsHelp}</p>
      {pairs.map(({ answer, question }, place) => (
        // Pairs are identified only by their position.
        <fieldset key={place} className={css["pair"]}>
          <legend>{t.pair(place + 1)}</legend>
          <TextField
            label={t.question}
            required
            maxLength={500}
            value={question}
            onChange={(typed) => changed(place, { question: typed })}
          />
          <LongText
            label={t.answer}
            required
            maxLength={4_000}
            value={answer}
            onChange={(typed) => changed(place, { answer: typed })}
          />
          {pairs.length === 1 ? null : (
            <Button
              kind="quiet"
              aria-label={t.removeOf(place + 1)}
              onClick={() => onChange({ pairs: pairs.filter((_, at) => at !== place) })}
            >
              {t.remove}
            </Button>
          )}
        </fieldset>
      ))}
      {error === undefined ? null : (
        <p role="alert" className={css["error"]}>
          {error}
        </p>
      )}
      <Button onClick={() => onChange({ pairs: [...pairs, emptyPair] })}>{t.add}</Button>
    </>
  )
}

export const CuratedFields = (props: Props) => {
  const t = useText(words)
  const { below, errorOf, form, onChange, type } = props
  return type === "TEXT" ? (
    <>
      <LongText
        label={t.text}
        help={t.textHelp}
        rows={12}
        required
        value={form.text}
        onChange={(text) => onChange({ text })}
        error={errorOf("config.text")}
      />
      {below?.("text")}
    </>
  ) : (
    <>
      <Pairs {...props} />
      {below?.("pairs")}
    </>
  )
}
