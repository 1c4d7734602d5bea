/** Input of labels, for a source or for the scope of a key. */
import { TextField } from "../../components/Field.tsx"
import { texts, useText } from "../../text/Language.tsx"

const words = texts({ label: "Labels" }, { label: "Etiketten" })

/** Separated by commas, without duplicates. */
export const parseLabels = (typed: string): ReadonlyArray<string> => [
  ...new Set(
    typed
      .split(",")
      .map((label) => label.trim())
      .filter((label) => label !== "")
  )
]

export const formatLabels = (labels: ReadonlyArray<string>): string => labels.join(", ")

interface Props {
  readonly help: string
  readonly value: string
  readonly onChange: (typed: string) => void
  readonly error: string | undefined
}

export const LabelsField = (props: Props) => {
  const t = useText(words)
  return <TextField label={t.label} {...props} />
}
