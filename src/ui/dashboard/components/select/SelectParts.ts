/** What a choice of one of several has in common before and after its list is loaded. */

export interface SelectProps<K extends string> {
  readonly label: string
  readonly help?: string
  /** Key and label of each choice, in order. */
  readonly options: ReadonlyArray<readonly [K, string]>
  readonly value: K
  readonly onChange: (value: K) => void
  readonly isDisabled?: boolean
  /** The label is only for screen readers. */
  readonly compact?: boolean
}

export interface ListSelectProps extends SelectProps<string> {
  /** The button that it replaces was pressed, not only focused. */
  readonly opensAtOnce: boolean
}
