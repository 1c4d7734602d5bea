/** The arguments that a model sends to a tool: a row for each, or the JSON Schema itself. */
import { Plus, X } from "lucide-react"
import { useState } from "react"
import type { JsonObject } from "../../../../../domain/Text.ts"
import { Button } from "../../../components/Button.tsx"
import { Switch } from "../../../components/Checkboxes.tsx"
import { Select, TextArea, TextField } from "../../../components/Field.tsx"
import { commonTexts } from "../../../text/commonTexts.ts"
import { GuideLink } from "../../../text/GuideLink.tsx"
import { texts, useText } from "../../../text/Language.tsx"
import { type Argument, argumentsOf, argumentTypes, schemaOf } from "./parameters.ts"
import css from "./Parameters.module.css"

const words = texts(
  {
    title: "Arguments of the model",
    lead: "What the model fills in. Each may stand as {name} in the address.",
    add: "Add argument",
    one: (place: number) => `Argument ${place}`,
    remove: (place: number) => `Remove argument ${place}`,
    description: "Description",
    type: "Type",
    choices: "Choices, separated by commas",
    required: "Required",
    string: "Text",
    number: "Number",
    integer: "Whole number",
    boolean: "Yes or no",
    choice: "One of several",
    asJson: "Edit as JSON Schema",
    asForm: "Edit as a form",
    parameters: "JSON Schema",
    parametersHelp: "A JSON Schema of type object.",
    tooMuch: "It says more than the form can show."
  },
  {
    title: "Argumente des Modells",
    lead: "Was das Modell ausfüllt. Jedes darf als {name} in der Adresse stehen.",
    add: "Argument hinzufügen",
    one: (place: number) => `Argument ${place}`,
    remove: (place: number) => `Argument ${place} entfernen`,
    description: "Beschreibung",
    type: "Art",
    choices: "Auswahl, durch Kommas getrennt",
    required: "Pflicht",
    string: "Text",
    number: "Zahl",
    integer: "Ganze Zahl",
    boolean: "Ja oder nein",
    choice: "Eines von mehreren",
    asJson: "Als JSON-Schema bearbeiten",
    asForm: "Als Formular bearbeiten",
    parameters: "JSON-Schema",
    parametersHelp: "Ein JSON-Schema vom Typ object.",
    tooMuch: "Es sagt mehr, als das Formular zeigen kann."
  }
)

const emptyArgument: Argument = { name: "", type: "string", description: "", isRequired: true, choices: "" }

interface RowsProps {
  readonly rows: ReadonlyArray<Argument>
  readonly onChange: (rows: ReadonlyArray<Argument>) => void
}

const Rows = ({ onChange, rows }: RowsProps) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const change = (index: number, fields: Partial<Argument>) =>
    onChange(rows.map((row, position) => (position === index ? { ...row, ...fields } : row)))
  return (
    <ol className={css["rows"]} aria-label={t.title}>
      {rows.map((row, index) => (
        // The index is the key, because a new row has no name.
        <li key={index}>
          <fieldset className={css["row"]} aria-label={t.one(index + 1)}>
            <div className={css["line"]}>
              <TextField
                label={common.name}
                required
                pattern="[A-Za-z_][\w\-]*"
                spellCheck="false"
                value={row.name}
                onChange={(name) => change(index, { name })}
              />
              <Select
                label={t.type}
                options={argumentTypes.map((type) => [type, t[type]] as const)}
                value={row.type}
                onChange={(type) => change(index, { type })}
              />
              <Button
                kind="quiet"
                icon
                aria-label={t.remove(index + 1)}
                onClick={() => onChange(rows.filter((_, position) => position !== index))}
              >
                <X aria-hidden size={16} />
              </Button>
            </div>
            <TextField
              label={t.description}
              value={row.description}
              onChange={(description) => change(index, { description })}
            />
            {row.type === "choice" ? (
              <TextField
                label={t.choices}
                required
                value={row.choices}
                onChange={(choices) => change(index, { choices })}
              />
            ) : null}
            <Switch
              label={t.required}
              isSelected={row.isRequired}
              onChange={(isRequired) => change(index, { isRequired })}
            />
          </fieldset>
        </li>
      ))}
    </ol>
  )
}

interface Props {
  /** JSON as text. */
  readonly value: string
  /** The parsed value; null if it is not a JSON object. */
  readonly schema: JsonObject | null
  readonly onChange: (value: string) => void
  readonly error: string | undefined
}

export const Parameters = ({ error, onChange, schema, value }: Props) => {
  const t = useText(words)
  /** The rows of the form; null while the text is edited. State, because `value` has no rows without a name. */
  const [rows, setRows] = useState(() => (schema === null ? null : argumentsOf(schema)))
  const [lastValue, setLastValue] = useState(value)
  // The value was changed elsewhere, for example saved in another window.
  if (value !== lastValue) {
    setLastValue(value)
    if (rows !== null) setRows(schema === null ? null : argumentsOf(schema))
  }
  const change = (next: ReadonlyArray<Argument>) => {
    const text = JSON.stringify(schemaOf(next), null, 2)
    setRows(next)
    setLastValue(text)
    onChange(text)
  }
  const parsedRows = schema === null ? null : argumentsOf(schema)
  return (
    <section className={css["parameters"]} aria-label={t.title}>
      <header className={css["head"]}>
        <div>
          <h3>{t.title}</h3>
          <p className={css["soft"]}>
            {rows === null && schema !== null && parsedRows === null ? t.tooMuch : t.lead}{" "}
            <GuideLink guide="tools" about={t.title} />
          </p>
        </div>
        {rows === null && parsedRows === null ? null : (
          <Button kind="quiet" onClick={() => setRows(rows === null ? parsedRows : null)}>
            {rows === null ? t.asForm : t.asJson}
          </Button>
        )}
      </header>
      {rows === null ? (
        <TextArea
          label={t.parameters}
          help={t.parametersHelp}
          rows={8}
          mono
          value={value}
          onChange={(text) => {
            setLastValue(text)
            onChange(text)
          }}
          error={error}
        />
      ) : (
        <>
          {rows.length === 0 ? null : <Rows rows={rows} onChange={change} />}
          {error === undefined ? null : <span className={css["error"]}>{error}</span>}
          <div>
            <Button onClick={() => change([...rows, emptyArgument])}>
              <Plus aria-hidden size={16} />
              {t.add}
            </Button>
          </div>
        </>
      )}
    </section>
  )
}
