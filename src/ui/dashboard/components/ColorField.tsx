/** A field with the browser's colour picker. */
import { useId } from "react"
import { texts, useText } from "../text/Language.tsx"
import { Button } from "./Button.tsx"
import css from "./ColorField.module.css"

const words = texts({ standard: "Use the default" }, { standard: "Voreinstellung nehmen" })

/** The widget's default colour. */
const standard = "#3d4fc4"

interface Props {
  readonly label: string
  /** Such as `#3d4fc4`; empty for the default. */
  readonly value: string
  readonly onChange: (value: string) => void
}

export const ColorField = ({ label, onChange, value }: Props) => {
  const t = useText(words)
  const id = useId()
  return (
    <div className={css["field"]}>
      <label htmlFor={id}>{label}</label>
      <div className={css["line"]}>
        <input
          id={id}
          type="color"
          value={value === "" ? standard : value}
          onChange={({ target }) => onChange(target.value)}
        />
        <code>{value === "" ? standard : value}</code>
        {value === "" ? null : (
          <Button kind="quiet" onClick={() => onChange("")}>
            {t.standard}
          </Button>
        )}
      </div>
    </div>
  )
}
