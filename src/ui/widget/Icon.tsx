/** @jsxImportSource preact */
const paths = {
  chat: "M4 5h16v11H9l-5 4z",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  attach:
    "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.7l-8.5 8.4a1.6 1.6 0 0 1-2.300-2.300L14.500 7.200",
  up: "M7 11v9H3v-9zM7 11l4-8c2 0 3 1 3 3v3h5.500c1 0 2 1 1.800 2l-1.300 7c-.2 1.200-1 2-2 2H7",
  down: "M7 13V4H3v9zM7 13l4 8c2 0 3-1 3-3v-3h5.500c1 0 2-1 1.800-2l-1.300-7c-.2-1.200-1-2-2-2H7",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-4 3.500-6 8-6s8 2 8 6"
} as const

export const Icon = ({ name }: { readonly name: keyof typeof paths }) => (
  <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">
    <path
      d={paths[name]}
      fill="none"
      stroke="currentColor"
      stroke-width="1.8"
      stroke-linecap="round"
      stroke-linejoin="round"
    />
  </svg>
)
