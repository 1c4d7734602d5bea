/** The websites that may use a key, as input and as stored. */
import { TextArea } from "../../components/Field.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { parseOrigins } from "./parseOrigins.ts"
import css from "./OriginsField.module.css"

const words = texts(
  {
    stored: "Stored as:",
    guessed: (scheme: string) =>
      `${scheme}:// was added. Write the address with its scheme if it is another.`,
    none: (typed: string) => `“${typed}” is no website. Write each as https://www.example.com.`
  },
  {
    stored: "Gespeichert wird:",
    guessed: (scheme: string) =>
      `${scheme}:// wurde ergänzt. Bitte die Adresse mit ihrem Schema schreiben, wenn es ein anderes ist.`,
    none: (typed: string) => `„${typed}“ ist keine Website. Bitte jede als https://www.example.com schreiben.`
  }
)

interface Props {
  readonly label: string
  readonly help: string
  readonly required?: boolean
  readonly value: string
  readonly onChange: (typed: string) => void
  /** The service's error. */
  readonly error: string | undefined
}

export const OriginsField = ({ error, value, ...props }: Props) => {
  const t = useText(words)
  const parsed = parseOrigins(value)
  const invalid = parsed.find(({ origin }) => origin === null)
  const valid = parsed.filter(({ origin }) => origin !== null)
  return (
    <div className={css["origins"]}>
      <TextArea
        {...props}
        rows={2}
        mono
        value={value}
        error={invalid === undefined ? error : t.none(invalid.typed)}
      />
      <div role="status" className={css["stored"]}>
        {valid.length === 0 ? null : (
          <>
            <span>{t.stored}</span>
            <ul>
              {valid.map(({ isSchemeGuessed, origin, typed }, index) => (
                <li key={`${index} ${typed}`}>
                  <code>{origin}</code>
                  {isSchemeGuessed ? <span>{t.guessed(origin?.split(":")[0] ?? "")}</span> : null}
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </div>
  )
}
