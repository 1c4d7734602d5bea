import { Label, ProgressBar } from "react-aria-components"
import css from "./Progress.module.css"

/** Progress in percent. */
export const Progress = ({ label, value }: { readonly label: string; readonly value: number }) => (
  <ProgressBar value={value} className={css["progress"] ?? ""}>
    {({ percentage = 0, valueText }) => (
      <>
        <Label className={css["label"] ?? ""}>{label}</Label>
        <span className={css["value"]}>{valueText}</span>
        <span className={css["track"]}>
          <span className={css["bar"]} style={{ width: `${percentage}%` }} />
        </span>
      </>
    )}
  </ProgressBar>
)
