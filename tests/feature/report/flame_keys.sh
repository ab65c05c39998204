#!/bin/sh
# The keys of a flame graph work in a browser: Enter selects the widest frame that the search finds, Escape returns to the view before, and no text leaves
# its box.
. "$(dirname "$(realpath "$0")")/../prelude"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no Chromium here"

timeout 110 "$spoor" record -q -F 499 -o x.nettrace -- "$target" spin 400 2>err || fail "record"
"$spoor" flame -q x.nettrace -o x.svg 2>err || fail "flame"

# This script runs after the page's own one, and writes the effects of the keys into the title.
cat >keys.js <<'END'
<script>//<![CDATA[
(function () {
const by = id => document.getElementById(id), lines = [];
const press = key => (document.activeElement || document.documentElement).dispatchEvent(new KeyboardEvent('keydown', { key: key, bubbles: true, cancelable: true }));
const focused = () => (document.activeElement.getAttribute('aria-label') || '').replace(/ in .*/, '');
const above = () => document.querySelectorAll('.above').length;
const say = what => lines.push(what + ': ' + focused() + ', ' + above() + ' above, search "' + by('search').value + '"');
const type = text => { by('search').value = text; by('search').dispatchEvent(new Event('input', { bubbles: true })); };
const widths = () => Array.from(document.querySelectorAll('.hit rect')).map(r => +r.getAttribute('width'));
press('/');
type('spin_here');
press('Enter');
say('found');
lines.push('widest: ' + (+document.activeElement.querySelector('rect').getAttribute('width') >= Math.max(...widths())));
press('Escape');
say('back');
press('/');
type('spin_here');
press('Enter');
press('Enter');
lines.push('zoomed: ' + (above() > 0));
press('Escape');
say('zoomed back');
press('Escape');
say('searched back');
let out = 0;
const right = document.documentElement.getBoundingClientRect().right;
for (const t of document.querySelectorAll('text')) {
	const box = t.parentNode.localName === 'svg' && t.parentNode !== document.documentElement ? t.parentNode.querySelector('text').parentNode : null;
	const edge = box ? +box.getAttribute('x') + +box.getAttribute('width') : right;
	if (t.textContent && t.getBoundingClientRect().right > edge + 1) out++;
}
lines.push('outside: ' + out);
document.querySelector('title').textContent = lines.join('|');
})();
//]]></script>
</svg>
END
sed '$d' x.svg >keys.svg
cat keys.js >>keys.svg
for width in 480 1200; do
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$scratch/profile" --window-size=$width,800 --dump-dom "file://$scratch/keys.svg" \
		>dom 2>err || skip "Chromium does not run here"
	sed -n 's/.*<title>\(found[^<]*\)<.*/\1/p' dom | tr '|' '\n' >out
	has out '^found: spin_here, 0 above, search "spin_here"$'
	has out '^widest: true$'
	has out '^back: all: .*, 0 above, search ""$'
	has out '^zoomed: true$'
	has out '^zoomed back: spin_here, 0 above, search "spin_here"$'
	has out '^searched back: all: .*, 0 above, search ""$'
	has out '^outside: 0$'
done
exit 0
