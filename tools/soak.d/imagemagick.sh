# idea: filters of raw pictures, PNG and JPEG
# needs: convert-im6.q16|magick=imagemagick
im=$(command -v convert-im6.q16 || command -v magick)
export MAGICK_THREAD_LIMIT=2
head -c $((1200 * 900 * 3)) data.bin > raw.rgb
raw="-size 1200x900 -depth 8 rgb:raw.rgb"
for filter in "-blur 0x3" "-rotate 17" "-resize 500x700!" "-flip -flop" "-colorspace Gray" "-unsharp 0x1" \
    "-roll +77+31 -crop 700x600+3+5 +repage"; do
    $im $raw $filter -depth 8 rgb:- | sha256sum
done
$im $raw -define png:exclude-chunks=date,time p.png
$im p.png -depth 8 rgb:- | cmp - raw.rgb
$im $raw -quality 80 p.jpg
$im p.jpg rgb:- | sha256sum
rm p.png
