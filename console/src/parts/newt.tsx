// The newt of the name, beside the name.

export function Wordmark() {
  return (
    <span class="wordmark">
      <svg viewBox="0 0 32 32" aria-hidden="true" focusable="false">
        <path class="newt-body" d="M24.5 6.5c-4-2.5-8.500-1-8.500 3.500 0 5 7 5.500 7 11 0 4.500-5 7-11.500 6" />
        <path class="newt-legs" d="M14.800 12.500l-5-1.500M18 9.800l2.500 4M21.800 18l5-1.200M21 23.500l3.200 3.700" />
        <circle class="newt-head" cx="25" cy="7" r="3" />
      </svg>
      <span>imori</span>
    </span>
  );
}
