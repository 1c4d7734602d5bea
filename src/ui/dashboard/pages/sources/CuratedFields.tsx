/** Fields of a text source, or of questions with answers. */
import type { ReactNode } from "react"
import type { SourceConfig } from "../../api/Sources.ts"
import { Button } from "../../components/Button.tsx"
import { TextArea, TextField } from "../../components/Field.tsx"
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

/** The source's type and config from the form. */
export const curatedOf = (type: CuratedType, { pairs, text }: CuratedForm) =>
  type === "TEXT" ? ({ type, config: { text } } as const) : ({ type, config: { pairs } } as const)

/** Paths of the validation issues that the fields show. */
export const curatedPaths = ["config.text", "config.pairs"] as const

interface Props {
  readonly type: CuratedType
  readonly form: CuratedForm
  readonly onChange: (form: Partial<CuratedForm>) => void
  readonly errorOf: (path: (typeof curatedPaths)[number]) => string | undefined
  /** Shows the stored value of a field that another session has changed. */
  readonly conflictOf?: (field: "text" | "pairs") => ReactNode
}

const Pairs = ({ errorOf, form: { pairs }, onChange }: Props) => {
  const t = useText(words)
  const changePair = (index: number, fields: Partial<(typeof pairs)[number]>) =>
    onChange({ pairs: pairs.map((pair, position) => (position === index ? { ...pair, ...fields } : pair)) })
  const error = errorOf("config.pairs")
  return (
    <>
      <p className={css["help"]}>{t.pairsHelp}</p>
      {pairs.map(({ answer, question }, index) => (
        // The index is the key, because pairs have no id.
        <fieldset key={index} className={css["pair"]}>
          <legend>{t.pair(index + 1)}</legend>
          <TextField
            label={t.question}
            required
            maxLength={500}
            value={question}
            onChange={(typed) => changePair(index, { question: typed })}
          />
          <TextArea
            label={t.answer}
            required
            maxLength={4_000}
            value={answer}
            onChange={(typed) => changePair(index, { answer: typed })}
          />
          {pairs.length === 1 ? null : (
            <Button
              kind="quiet"
              aria-label={t.removeOf(index + 1)}
              onClick={() => onChange({ pairs: pairs.filter((_, position) => position !== index) })}
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
  const { conflictOf, errorOf, form, onChange, type } = props
  return type === "TEXT" ? (
    <>
      <TextArea
        label={t.text}
        help={t.textHelp}
        rows={12}
        required
        value={form.text}
        onChange={(text) => onChange({ text })}
        error={errorOf("config.text")}
      />
      {conflictOf?.("text")}
    </>
  ) : (
    <>
      <Pairs {...props} />
      {conflictOf?.("pairs")}
    </>
  )
}
